package core

import (
	"math/big"
	"net/netip"
)

// AppendAllocate claims up to count addresses as count calls of [Pool.Allocate] would, but in one call into the core,
// and appends them to dst: fewer when no more are free, or the core's memory is exhausted. With [Hashed] each search
// goes on after the address before.
func (p *Pool) AppendAllocate(dst []netip.Addr, count int, policy Policy, seed uint32) ([]netip.Addr, error) {
	taken, err := p.allocateMany(count, policy, seed)
	width := p.family.width()
	for ; len(taken) > 0; taken = taken[width:] {
		dst = append(dst, p.family.get(taken))
	}
	return dst, err
}

// AppendAllocatePacked is [Pool.AppendAllocate] with packed addresses.
func (p *Pool) AppendAllocatePacked(dst []byte, count int, policy Policy, seed uint32) ([]byte, error) {
	taken, err := p.allocateMany(count, policy, seed)
	return append(dst, taken...), err
}

// allocateMany gives the packed addresses where they stand in the exchange buffer.
func (p *Pool) allocateMany(count int, policy Policy, seed uint32) ([]byte, error) {
	result := p.core.raw.PoolAllocateMany(p.handle, int32(policy), seed, countOf(count))
	taken, err := p.core.number("pool_allocate_many", result)
	if err != nil {
		return nil, err
	}
	return p.core.raw.Buffer()[:taken*p.family.width()], nil
}

// AppendContains appends [Pool.Contains] for each address to dst, in one call into the core.
func (p *Pool) AppendContains(dst []bool, addrs []netip.Addr) ([]bool, error) {
	return appendBatch(p.batch("pool_contains_many", (*Raw).PoolContainsMany), dst, addrs, isYes)
}

// AppendTest appends [Pool.Test] for each address to dst, in one call into the core.
func (p *Pool) AppendTest(dst []bool, addrs []netip.Addr) ([]bool, error) {
	return appendBatch(p.batch("pool_test_many", (*Raw).PoolTestMany), dst, addrs, isYes)
}

// AppendClaim appends [Pool.Claim] for each address to dst, in one call into the core. An error ends the batch: dst has
// the outcomes of those that are done.
func (p *Pool) AppendClaim(dst []Outcome, addrs []netip.Addr) ([]Outcome, error) {
	return appendBatch(p.batch("pool_claim_many", (*Raw).PoolClaimMany), dst, addrs, outcomeOfClaim)
}

// AppendRelease appends [Pool.Release] for each address to dst, in one call into the core.
func (p *Pool) AppendRelease(dst []Outcome, addrs []netip.Addr) ([]Outcome, error) {
	return appendBatch(p.batch("pool_release_many", (*Raw).PoolReleaseMany), dst, addrs, outcomeOfRelease)
}

// ContainsPacked is how many of the packed addresses may be allocated.
func (p *Pool) ContainsPacked(addrs []byte) (int, error) {
	return p.batch("pool_contains_many", (*Raw).PoolContainsMany).packed(addrs)
}

// TestPacked is how many of the packed addresses are used.
func (p *Pool) TestPacked(addrs []byte) (int, error) {
	return p.batch("pool_test_many", (*Raw).PoolTestMany).packed(addrs)
}

// ClaimPacked marks the packed addresses used, as far as they are in the ranges: how many are newly so. An error ends
// the batch; those before it are done.
func (p *Pool) ClaimPacked(addrs []byte) (int, error) {
	return p.batch("pool_claim_many", (*Raw).PoolClaimMany).packed(addrs)
}

// ReleasePacked marks the packed addresses not used: how many were.
func (p *Pool) ReleasePacked(addrs []byte) (int, error) {
	return p.batch("pool_release_many", (*Raw).PoolReleaseMany).packed(addrs)
}

func (p *Pool) batch(operation string, call batchCall) batch {
	return batch{p.core, p.family, p.handle, operation, call}
}

// ClaimRun marks all addresses of a range used, or none: [Claimed]; [Taken] when one of them is not free, that is used
// or masked; [Outside] when they do not all lie in the window.
func (p *Pool) ClaimRun(run Range) (Outcome, error) {
	result, err := p.markRun("pool_claim_run", (*Raw).PoolClaimRun, run)
	return outcomeOfClaim(result), err
}

// ReleaseRun marks all addresses of a range not used: [Released] when one was used, [Free] when none was; [Outside]
// when they do not all lie in the window, and then nothing has changed.
func (p *Pool) ReleaseRun(run Range) (Outcome, error) {
	result, err := p.markRun("pool_release_run", (*Raw).PoolReleaseRun, run)
	return outcomeOfRelease(min(result, 1)), err
}

type runCall = func(r *Raw, pool int32, first uint32, count int32) int32

// markRun runs an operation on consecutive ordinals: its result, or outside, which it is after an error, too.
func (p *Pool) markRun(operation string, call runCall, run Range) (int32, error) {
	first, err := p.ordinal(run.First)
	if err != nil || first < 0 {
		return outside, err
	}
	last, err := p.ordinal(run.Last)
	if err != nil || last < first || !isDistance(run, int64(last-first)) {
		return outside, err
	}
	result, err := p.core.check(operation, call(&p.core.raw, p.handle, uint32(first), last-first+1))
	if err != nil {
		return outside, err
	}
	return result, nil
}

// isDistance reports whether the last address is so far after the first: ordinals go on where ranges have a gap.
func isDistance(run Range, distance int64) bool {
	first := new(big.Int).SetBytes(run.First.AsSlice())
	last := new(big.Int).SetBytes(run.Last.AsSlice())
	return last.Sub(last, first).Cmp(big.NewInt(distance)) == 0
}
