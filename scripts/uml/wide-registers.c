/* Lets User-Mode Linux run on processors whose registers it does not know, such as AMX's tiles.
 *
 * It restores the registers of its processes by PTRACE_SETREGSET with as many bytes as it knows of, and the kernel
 * takes all of them or none (arch/x86/kernel/fpu/regset.c, xstateregs_set). So unknown registers are read first, and
 * written back with the rest.
 *
 * Preloaded into linux.uml by machine.ts, which builds it. No thread of linux.uml restores registers but one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

/* More than any processor has: 11,008 bytes with AMX. Not on the stack, which is a small one of the guest's. */
static char all_registers[64 * 1024];

typedef long (*ptrace_call)(int request, pid_t pid, void *address, void *data);

long ptrace(enum __ptrace_request request, ...)
{
	static ptrace_call call;
	va_list arguments;
	va_start(arguments, request);
	pid_t pid = va_arg(arguments, pid_t);
	void *address = va_arg(arguments, void *);
	void *data = va_arg(arguments, void *);
	va_end(arguments);

	if (call == NULL)
		call = (ptrace_call)dlsym(RTLD_NEXT, "ptrace");
	if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) {
		const struct iovec *known = data;
		struct iovec all = { all_registers, sizeof all_registers };
		if (call(PTRACE_GETREGSET, pid, address, &all) == 0 && all.iov_len > known->iov_len) {
			memcpy(all_registers, known->iov_base, known->iov_len);
			return call(PTRACE_SETREGSET, pid, address, &all);
		}
	}
	return call((int)request, pid, address, data);
}
