// The turn of spawn.py in Go: start a goroutine that sends on a channel, receive.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	turns, _ := strconv.Atoi(os.Args[1])
	done := make(chan struct{})
	for round := 0; round < 5; round++ {
		start := time.Now()
		for i := 0; i < turns; i++ {
			go func() { done <- struct{}{} }()
			<-done
		}
		fmt.Println(float64(time.Since(start).Nanoseconds()) / float64(turns))
	}
}
