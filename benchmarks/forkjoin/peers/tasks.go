// The workloads that are recursion or rows, in Go: goroutines for branches above a size, as one writes it by hand.
//
//	tasks NAME SIZE WORKERS ROUNDS      prints the result and the best time in seconds
package main

import (
	"fmt"
	"math"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

const (
	fibCut    = 20
	queensCut = 3
	sortRun   = 24
	sortCut   = 4096
	mostSteps = 300
)

func both(f, g func()) {
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		defer group.Done()
		f()
	}()
	g()
	group.Wait()
}

func fibSerial(n int) int {
	if n < 2 {
		return n
	}
	return fibSerial(n-1) + fibSerial(n-2)
}

func fib(n int) int {
	if n < fibCut {
		return fibSerial(n)
	}
	var x, y int
	both(func() { x = fib(n - 1) }, func() { y = fib(n - 2) })
	return x + y
}

func queens(board, columns, rising, falling, depth int) int {
	if columns == board {
		return 1
	}
	free, ways := board&^(columns|rising|falling), 0
	if depth >= queensCut {
		for free != 0 {
			queen := free & -free
			free ^= queen
			ways += queens(board, columns|queen, (rising|queen)<<1, (falling|queen)>>1, depth)
		}
		return ways
	}
	var group sync.WaitGroup
	var found [64]int
	for count := 0; free != 0; count++ {
		queen := free & -free
		free ^= queen
		group.Add(1)
		go func() {
			defer group.Done()
			found[count] = queens(board, columns|queen, (rising|queen)<<1, (falling|queen)>>1, depth+1)
		}()
	}
	group.Wait()
	for _, each := range found {
		ways += each
	}
	return ways
}

func merge(first, second, target []float64) {
	i, k := 0, 0
	for at := range target {
		if k == len(second) || (i < len(first) && !(second[k] < first[i])) {
			target[at] = first[i]
			i++
		} else {
			target[at] = second[k]
			k++
		}
	}
}

func sort(a, scratch []float64, elsewhere bool) {
	if len(a) <= sortRun {
		for i := 1; i < len(a); i++ {
			x, k := a[i], i
			for ; k > 0 && x < a[k-1]; k-- {
				a[k] = a[k-1]
			}
			a[k] = x
		}
		if elsewhere {
			copy(scratch, a)
		}
		return
	}
	middle := len(a) / 2
	low := func() { sort(a[:middle], scratch[:middle], !elsewhere) }
	high := func() { sort(a[middle:], scratch[middle:], !elsewhere) }
	if len(a) > sortCut {
		both(low, high)
	} else {
		low()
		high()
	}
	if elsewhere {
		merge(a[:middle], a[middle:], scratch)
	} else {
		merge(scratch[:middle], scratch[middle:], a)
	}
}

func mandelbrot(height, width int) int {
	var group sync.WaitGroup
	totals := make([]int, height)
	for i := range height {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := range width {
				x, y, a, b := float64(j*3)/float64(width)-2, float64(i*2)/float64(height)-1, 0.0, 0.0
				step := 0
				for ; step < mostSteps; step++ {
					a, b = a*a-b*b+x, 2*a*b+y
					if a*a+b*b > 4 {
						break
					}
				}
				totals[i] += step
			}
		}()
	}
	group.Wait()
	total := 0
	for _, each := range totals {
		total += each
	}
	return total
}

func main() {
	name := os.Args[1]
	size, _ := strconv.Atoi(os.Args[2])
	workers, _ := strconv.Atoi(os.Args[3])
	rounds, _ := strconv.Atoi(os.Args[4])
	runtime.GOMAXPROCS(workers)
	var numbers, a, scratch []float64
	if name == "mergesort" {
		numbers, a, scratch = make([]float64, size), make([]float64, size), make([]float64, size)
		for i := range numbers {
			numbers[i] = rand.Float64()
		}
	}
	best, result := math.Inf(1), 0
	for range rounds + 1 {
		start := time.Now()
		switch name {
		case "fib":
			result = fib(size)
		case "nqueens":
			result = queens(1<<size-1, 0, 0, 0, 0)
		case "mergesort":
			copy(a, numbers)
			sort(a, scratch, false)
		case "mandelbrot":
			result = mandelbrot(size, size*3/2)
		}
		best = math.Min(best, time.Since(start).Seconds())
	}
	fmt.Println(result, best)
}
