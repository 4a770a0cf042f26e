"""What ran where and when: traces and profiles, and what is read out of them."""
