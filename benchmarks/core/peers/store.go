package main

import (
	"net"
	"net/netip"
	"os"
)

// store keeps reservations in memory, as host-local's backend.Store. It is for one allocator and
// one goroutine.
type store struct {
	owners map[netip.Addr]string
	// addresses of each container that reserved one since the store was made.
	addresses map[string][]net.IP
	last      net.IP
}

func newStore() *store {
	return &store{owners: map[netip.Addr]string{}, addresses: map[string][]net.IP{}}
}

func (s *store) Lock() error   { return nil }
func (s *store) Unlock() error { return nil }
func (s *store) Close() error  { return nil }

func (s *store) Reserve(id, _ string, ip net.IP, _ string) (bool, error) {
	addr := toAddr(ip)
	if _, taken := s.owners[addr]; taken {
		return false, nil
	}
	s.owners[addr] = id
	s.addresses[id] = append(s.addresses[id], ip)
	s.last = ip
	return true, nil
}

func (s *store) LastReservedIP(string) (net.IP, error) {
	if s.last == nil {
		return nil, os.ErrNotExist
	}
	return s.last, nil
}

func (s *store) ReleaseByID(id, _ string) error {
	for _, ip := range s.addresses[id] {
		delete(s.owners, toAddr(ip))
	}
	delete(s.addresses, id)
	return nil
}

func (s *store) GetByID(id, _ string) []net.IP { return s.addresses[id] }

func toAddr(ip net.IP) netip.Addr {
	addr, _ := netip.AddrFromSlice(ip)
	return addr.Unmap()
}
