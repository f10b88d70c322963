// Command linearizable reads the calls of small pools as JSON lines and says whether some order of them is legal: each
// address has one owner, a pool is exhausted only when all addresses have one, and a member gets the address that is
// retained for it.
//
//	{"pool":"few","addresses":["10.7.0.1","10.7.0.2"]}
//	{"pool":"few","op":"add","client":0,"pod":"uid-a","member":"web-0","call":1,"return":5,"address":"10.7.0.1"}
//	{"pool":"few","op":"add","client":1,"pod":"uid-b","call":2,"return":9,"exhausted":true}
//	{"pool":"few","op":"add","client":2,"pod":"uid-c","call":3}
//	{"pool":"few","op":"del","client":0,"pod":"uid-a","member":"web-0","address":"10.7.0.1","call":7,"return":20}
//
// A DEL takes effect when the address is no longer its pod's, so its return is the last moment at which that may be. An
// ADD with neither an address nor "exhausted" has no answer, or one that says nothing: it may have got any address, or
// none, and may have lost it again; without a return it stays open to the end. Exit codes: 0 legal, 1 not, 2 the input
// is wrong, or the search takes too long.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// The search is exponential in these.
const (
	maxAddresses = 8
	maxClients   = 8
	searchLimit  = 50 * time.Second
)

type line struct {
	Pool      string   `json:"pool"`
	Addresses []string `json:"addresses"`
	Op        string   `json:"op"`
	Client    int      `json:"client"`
	Pod       string   `json:"pod"`
	Member    string   `json:"member"`
	Address   string   `json:"address"`
	Exhausted bool     `json:"exhausted"`
	Call      int64    `json:"call"`
	Return    *int64   `json:"return"`
}

// An owner is "" (free), a pod's UID, "kept " and a member, or "? " and a member or none: some ADD without an answer.
// The state has one for each address of the pool, joined, so that states can be compared.
type state = string

func kept(member string) string    { return "kept " + member }
func unknown(member string) string { return "? " + member }

func step(addresses []string, s state, in line) []interface{} {
	owners := strings.Split(s, "\n")
	with := func(index int, owner string) interface{} {
		next := slices.Clone(owners)
		next[index] = owner
		return strings.Join(next, "\n")
	}
	isFree := func(index int) bool { return owners[index] == "" }
	switch {
	case in.Op == "del":
		index := slices.Index(addresses, in.Address)
		if owners[index] != in.Pod {
			return nil
		}
		if in.Member != "" {
			return []interface{}{with(index, kept(in.Member))}
		}
		return []interface{}{with(index, "")}
	case in.Op == "lost":
		// What an ADD without an answer may have got is given up, at a time that nobody knows.
		next := []interface{}{s}
		for index, owner := range owners {
			if owner == unknown(in.Member) {
				next = append(next, with(index, ""))
			}
			if owner == unknown(in.Member) && in.Member != "" {
				next = append(next, with(index, kept(in.Member)))
			}
		}
		return next
	case in.Exhausted:
		if slices.Contains(owners, "") || (in.Member != "" && slices.Contains(owners, kept(in.Member))) {
			return nil
		}
		return []interface{}{s}
	case in.Address != "":
		index := slices.Index(addresses, in.Address)
		retained := -1
		if in.Member != "" {
			retained = slices.Index(owners, kept(in.Member))
		}
		if owners[index] == in.Pod || index == retained || (retained < 0 && isFree(index)) {
			return []interface{}{with(index, in.Pod)}
		}
		return nil
	default:
		next := []interface{}{s}
		for index := range owners {
			if isFree(index) || (in.Member != "" && owners[index] == kept(in.Member)) {
				next = append(next, with(index, unknown(in.Member)))
			}
		}
		return next
	}
}

func check(addresses []string, calls []line) porcupine.CheckResult {
	model := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{strings.Repeat("\n", len(addresses)-1)} },
		Step: func(s, in, _ interface{}) []interface{} { return step(addresses, s.(state), in.(line)) },
	}
	history := make([]porcupine.Operation, 0, len(calls))
	for _, call := range calls {
		end := int64(math.MaxInt64)
		if call.Return != nil {
			end = *call.Return
		}
		history = append(history, porcupine.Operation{ClientId: call.Client, Input: call, Call: call.Call, Return: end})
	}
	return porcupine.CheckOperationsTimeout(model.ToModel(), history, searchLimit)
}

func read() (map[string][]string, map[string][]line, error) {
	pools, calls := map[string][]string{}, map[string][]line{}
	input := bufio.NewScanner(os.Stdin)
	for number := 1; input.Scan(); number++ {
		var each line
		if err := json.Unmarshal(input.Bytes(), &each); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", number, err)
		}
		addresses := pools[each.Pool]
		switch {
		case each.Op == "" && len(each.Addresses) > 0 && len(each.Addresses) <= maxAddresses:
			pools[each.Pool] = each.Addresses
			continue
		case each.Op != "add" && each.Op != "del", each.Client < 0, each.Client >= maxClients, each.Pod == "":
			return nil, nil, fmt.Errorf("line %d: %s", number, input.Text())
		case each.Address != "" && !slices.Contains(addresses, each.Address), each.Op == "del" && each.Address == "":
			return nil, nil, fmt.Errorf("line %d: not an address of pool %q: %q", number, each.Pool, each.Address)
		}
		calls[each.Pool] = append(calls[each.Pool], each)
		if each.Op == "add" && each.Address == "" && !each.Exhausted {
			lost := each
			lost.Op = "lost"
			calls[each.Pool] = append(calls[each.Pool], lost)
		}
	}
	return pools, calls, input.Err()
}

func main() {
	pools, calls, err := read()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	exit := 0
	for pool, each := range calls {
		switch check(pools[pool], each) {
		case porcupine.Illegal:
			fmt.Printf("pool %s: no order of its %d calls is legal\n", pool, len(each))
			exit = max(exit, 1)
		case porcupine.Unknown:
			fmt.Fprintf(os.Stderr, "pool %s: no order of its %d calls was found within %v\n", pool, len(each), searchLimit)
			exit = 2
		}
	}
	os.Exit(exit)
}
