// Command caller attaches and detaches pods through libcni, from one process as a container runtime does, and
// measures each call.
//
// Usage: caller PLUGIN-DIRECTORIES CACHE-DIRECTORY NETNS-PREFIX < batches
//
// Batches are lines of JSON, worked off in their order. Pod N has the network namespace NETNS-PREFIX followed by N.
// The answer is a line of JSON for each call, and one for each batch. A call that fails ends the program with what it
// failed with on stderr.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/containernetworking/cni/libcni"
)

// batch asks for Count pods with the numbers from First, AtOnce of them at any time.
type batch struct {
	// List is the file of the network list.
	List string `json:"list"`
	// Verb is ADD, DEL, or POD: both, and the namespace deleted after them.
	Verb   string `json:"verb"`
	AtOnce int    `json:"atOnce"`
	First  int    `json:"first"`
	Count  int    `json:"count"`
}

// call is one call to libcni, from before it until it has returned.
type call struct {
	Batch       int    `json:"batch"`
	Verb        string `json:"verb"`
	Nanoseconds int64  `json:"ns"`
}

// whole is a batch, from before its first call until after its last.
type whole struct {
	Batch       int   `json:"batch"`
	Nanoseconds int64 `json:"wallNs"`
}

type caller struct {
	cni         *libcni.CNIConfig
	netnsPrefix string
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("usage: caller PLUGIN-DIRECTORIES CACHE-DIRECTORY NETNS-PREFIX")
	}
	c := caller{libcni.NewCNIConfigWithCacheDir(filepath.SplitList(args[0]), args[1], nil), args[2]}
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	for number := 0; ; number++ {
		var b batch
		if err := decoder.Decode(&b); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("batch %d: %w", number, err)
		}
		calls, wall, err := c.runBatch(b)
		if err != nil {
			return fmt.Errorf("batch %d: %w", number, err)
		}
		for _, each := range calls {
			each.Batch = number
			if err := encoder.Encode(each); err != nil {
				return err
			}
		}
		if err := encoder.Encode(whole{number, wall.Nanoseconds()}); err != nil {
			return err
		}
	}
}

// runBatch returns the calls of all pods in the order of their numbers.
func (c caller) runBatch(b batch) ([]call, time.Duration, error) {
	list, err := libcni.ConfListFromFile(b.List)
	if err != nil {
		return nil, 0, err
	}
	calls, failures := make([][]call, b.Count), make([]error, b.Count)
	numbers := make(chan int)
	var workers sync.WaitGroup
	start := time.Now()
	for range b.AtOnce {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for index := range numbers {
				calls[index], failures[index] = c.serve(list, b.Verb, b.First+index)
			}
		}()
	}
	for index := range b.Count {
		numbers <- index
	}
	close(numbers)
	workers.Wait()
	wall := time.Since(start)
	all := make([]call, 0, 2*b.Count)
	for _, each := range calls {
		all = append(all, each...)
	}
	return all, wall, errors.Join(failures...)
}

// serve does to one pod what the verb asks for.
func (c caller) serve(list *libcni.NetworkConfigList, verb string, number int) ([]call, error) {
	pod := c.podOf(number)
	add := func() error {
		_, err := c.cni.AddNetworkList(context.Background(), list, pod)
		return err
	}
	del := func() error { return c.cni.DelNetworkList(context.Background(), list, pod) }
	switch verb {
	case "ADD":
		return measure(verb, add)
	case "DEL":
		return measure(verb, del)
	case "POD":
		added, err := measure("ADD", add)
		if err != nil {
			return nil, err
		}
		deleted, err := measure("DEL", del)
		if err != nil {
			return nil, err
		}
		return append(added, deleted...), deleteNamespace(pod.NetNS)
	}
	return nil, fmt.Errorf("there is no verb %q", verb)
}

func measure(verb string, work func() error) ([]call, error) {
	start := time.Now()
	err := work()
	return []call{{Verb: verb, Nanoseconds: time.Since(start).Nanoseconds()}}, err
}

func (c caller) podOf(number int) *libcni.RuntimeConf {
	id := fmt.Sprintf("bench-%d", number)
	return &libcni.RuntimeConf{
		ContainerID: id,
		NetNS:       fmt.Sprintf("%s%d", c.netnsPrefix, number),
		IfName:      "eth0",
		Args: [][2]string{
			{"IgnoreUnknown", "1"},
			{"K8S_POD_NAMESPACE", "bench"},
			{"K8S_POD_NAME", fmt.Sprintf("pod-%d", number)},
			{"K8S_POD_INFRA_CONTAINER_ID", id},
			{"K8S_POD_UID", fmt.Sprintf("uid-%d", number)},
		},
	}
}

// deleteNamespace does what a runtime does after the DEL of a pod's last network.
func deleteNamespace(path string) error {
	if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return os.Remove(path)
}
