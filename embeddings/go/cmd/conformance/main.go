// Conformance replays the vectors of test/vectors/core through the raw layer, each on an instance of its own, and
// compares every result, every output and the memory at the end.
//
//	conformance FOLDER
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	"vendor.io/berth/core"
)

type step struct {
	Call   string
	Args   []int64 // some are written as u32, some as i32
	Input  *string // hexadecimal, as Output
	Result int32
	Output *string
}

type vector struct {
	Steps []step
	State struct {
		Bytes   int32
		FNV1a64 string
	}
}

func main() {
	if len(os.Args) != 2 {
		fail("Usage: conformance FOLDER")
	}
	folder := os.Args[1]
	entries, err := os.ReadDir(folder) // in the order of names
	if err != nil {
		fail(err)
	}
	found := false
	for _, entry := range entries {
		name, isVector := strings.CutSuffix(entry.Name(), ".json")
		if !isVector {
			continue
		}
		found = true
		line, err := replay(filepath.Join(folder, entry.Name()))
		if err != nil {
			fail(fmt.Sprintf("%s: %v", name, err))
		}
		fmt.Printf("%s: %s\n", name, line)
	}
	if !found {
		fail("No vectors in " + folder)
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}

// replay plays a vector on a fresh instance: what to say of it.
func replay(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var v vector
	if err := json.Unmarshal(text, &v); err != nil {
		return "", err
	}
	instance, err := core.Open()
	if err != nil {
		return "", err
	}
	defer instance.Close()
	raw := instance.Raw()
	for index, s := range v.Steps {
		if err := play(raw, s); err != nil {
			return "", fmt.Errorf("step %d, %s(%s): %w", index, s.Call, joined(s.Args), err)
		}
	}
	length := raw.StateBytes()
	if length != v.State.Bytes {
		return "", fmt.Errorf("state: %d bytes, wanted %d", length, v.State.Bytes)
	}
	state := raw.Memory()[:length]
	hash := fnv.New64a()
	hash.Write(state)
	if found := hex.EncodeToString(hash.Sum(nil)); found != v.State.FNV1a64 {
		return "", fmt.Errorf("state: fnv1a64 %s, wanted %s", found, v.State.FNV1a64)
	}
	return fmt.Sprintf("%d steps, %d bytes, sha256 %x", len(v.Steps), length, sha256.Sum256(state)), nil
}

// play makes one call and compares its result, then its output.
func play(raw *core.Raw, s step) error {
	if s.Input != nil {
		input, err := hex.DecodeString(*s.Input)
		if err != nil {
			return err
		}
		copy(exchange(raw, len(input)), input)
	}
	args := make([]int32, len(s.Args))
	for i, arg := range s.Args {
		args[i] = int32(arg)
	}
	result, err := raw.Call(s.Call, args...)
	if err != nil {
		return err
	}
	if result != s.Result {
		return fmt.Errorf("result %d, wanted %d", result, s.Result)
	}
	if s.Output == nil {
		return nil
	}
	output := exchange(raw, 0)
	if found := hex.EncodeToString(output[:min(len(output), len(*s.Output)/2)]); found != *s.Output {
		return fmt.Errorf("output %s, wanted %s", found, *s.Output)
	}
	return nil
}

// exchange is the memory from the exchange buffer on, asked for as the ABI wants it.
func exchange(raw *core.Raw, length int) []byte {
	if start := raw.Exchange(int32(length)); start >= 0 {
		return raw.Memory()[start:]
	}
	return nil
}

func joined(args []int64) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = fmt.Sprint(arg)
	}
	return strings.Join(words, ", ")
}
