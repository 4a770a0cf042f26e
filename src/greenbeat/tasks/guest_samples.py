"""Samples of guests, for `greenbeat.profile`: the frames of a call at a beat, as modules and indices of functions."""

from greenbeat.native import cast, export, native, ptr, stack, u64
from greenbeat.runtime.frames import walk_frames
from greenbeat.runtime.layout import FrameRecord, Task
from greenbeat.tasks.sampling import GUEST, MOST_FRAMES, guest_sampler, record

# Frames of a guest take two words each.
GUEST_FRAMES = MOST_FRAMES // 2


@native(cold=True)
def sample_guest(task: ptr[Task]) -> None:
    """Note which functions a guest is in, whose registers are in its task."""
    records = stack(FrameRecord, GUEST_FRAMES)
    count = walk_frames(task, records, GUEST_FRAMES)
    frames = stack(u64, MOST_FRAMES)
    for i in range(count):
        frames[2 * i] = cast(u64, records[i].instance.module)
        frames[2 * i + 1] = u64(records[i].index)
    record(GUEST, 0, frames, u64(count) * 2)


@export
def prepare_samples() -> None:
    """Let guests be sampled."""
    guest_sampler[0] = sample_guest
