package contest

import (
	"runtime"
	"slices"
	"time"
)

const (
	warmUpTime = 200 * time.Millisecond
	sampleTime = 30 * time.Millisecond
	samples    = 9

	// A pair that takes longer than slowPair is measured fewSamples times only.
	slowPair   = 200 * time.Millisecond
	fewSamples = 3
)

// measure gives the median of the samples, nanoseconds per pair, and how many there were.
func measure(pair Pair) (ns float64, count int, err error) {
	runtime.GC()
	if _, err := sample(pair, warmUpTime); err != nil {
		return 0, 0, err
	}
	var all []float64
	for count = samples; len(all) < count; {
		ns, err := sample(pair, sampleTime)
		if err != nil {
			return 0, 0, err
		}
		if ns > float64(slowPair.Nanoseconds()) {
			count = fewSamples
		}
		all = append(all, ns)
	}
	slices.Sort(all)
	return all[len(all)/2], len(all), nil
}

// sample runs pairs for at least the given time, and at least one; nanoseconds per pair.
// The clock is read after 1, 2, 4, 8 ... further pairs, so that reading it costs nothing.
func sample(pair Pair, least time.Duration) (float64, error) {
	start := time.Now()
	total := 0
	for more := 1; ; more *= 2 {
		for range more {
			if err := pair(); err != nil {
				return 0, err
			}
		}
		total += more
		if elapsed := time.Since(start); elapsed >= least {
			return float64(elapsed.Nanoseconds()) / float64(total), nil
		}
	}
}
