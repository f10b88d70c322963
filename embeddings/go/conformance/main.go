// Conformance replays vectors (test/vectors/core/README.md), each on an instance of its own: conformance FILE...
package main

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"

	"vendor.io/berth/core"
)

func main() {
	for _, file := range os.Args[1:] {
		text, err := os.ReadFile(file)
		if err == nil {
			err = replay(file, strings.Split(strings.TrimSpace(string(text)), "\n"))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func replay(file string, lines []string) error {
	instance, err := core.Open()
	if err != nil {
		return err
	}
	defer instance.Close()
	steps := -1 // the last line is none
	for at, line := range lines {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, " ")
		result, output := play(instance.Raw(), columns)
		found := fmt.Sprintf("%s %d %s", strings.Join(columns[:3], " "), result, output)
		if found != line {
			return fmt.Errorf("%s:%d: %s", file, at+1, found)
		}
		steps++
	}
	fmt.Printf("%s: %d steps, %s\n", file, steps, lines[len(lines)-1])
	return nil
}

// play is a line's result, and as much output as the line has.
func play(raw *core.Raw, columns []string) (int32, string) {
	if columns[0] == "state" {
		bytes, _ := raw.StateBytes()
		hash := fnv.New64a()
		hash.Write(raw.Memory()[:bytes])
		return bytes, hex.EncodeToString(hash.Sum(nil))
	}
	var args []int32
	for _, word := range strings.Split(columns[1], ",") {
		arg, _ := strconv.ParseInt(word, 10, 32) // "-" is one argument too many, which Call does not look at
		args = append(args, int32(arg))
	}
	if columns[2] != "-" {
		input, _ := hex.DecodeString(columns[2])
		raw.Write(input)
	}
	result, _ := raw.Call(columns[0], args...)
	if columns[4] == "-" {
		return result, "-"
	}
	return result, hex.EncodeToString(raw.Output()[:len(columns[4])/2])
}
