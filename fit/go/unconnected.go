package fit

import (
	"net"
	"os"
	"strings"
	"syscall"
)

// dialing is what kinds.json says of a connection that cannot be made.
type dialing struct{ Op, Exception, Syscall, Errno, Text string }

// causes makes what package net finds wrong with a connection, by the name of its type.
var causes = map[string]func(of dialing, host string) error{
	"os.SyscallError": func(of dialing, _ string) error { return os.NewSyscallError(of.Syscall, numbers[of.Errno]) },
	"net.DNSError": func(of dialing, host string) error {
		return &net.DNSError{Err: of.Text, Name: host, IsNotFound: true}
	},
}

// numbers are those with which connect fails (POSIX), by their names in kinds.json.
var numbers = map[string]syscall.Errno{
	"ECONNREFUSED": syscall.ECONNREFUSED,
	"EHOSTUNREACH": syscall.EHOSTUNREACH,
	"ENETUNREACH":  syscall.ENETUNREACH,
	"ETIMEDOUT":    syscall.ETIMEDOUT,
}

// Connecting tells whether a kind is a connection to this host that cannot be made, as known here; one known by an
// address alone has no name that could not resolve.
func (k Kind) Connecting(host string) bool {
	found := k.record()
	made := found.Connecting != nil && causes[found.Connecting.Go.Exception] != nil
	return made && (!found.Named || isNamed(host))
}

func isNamed(host string) bool {
	return host != "" && !strings.Contains(host, ":") && !ipv4.MatchString(host)
}

// Unconnected makes what package net says where a connection cannot be made in this way ([Kind.Connecting]).
func Unconnected(kind Kind, host, port string) error {
	found := kind.record()
	how := found.Connecting.Go
	failure := &net.OpError{Op: how.Op, Net: "tcp", Err: causes[how.Exception](how, host)}
	if !found.Named { // it came as far as an address
		failure.Addr = addressOf(host, port)
	}
	return failure
}

// RefusedError makes what package net says where nothing listens.
func RefusedError(host, port string) error { return Unconnected(Refused, host, port) }
