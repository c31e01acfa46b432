/*
 * A disk whose fdatasync(2) takes at least 4 ms, for a program that is started with LD_PRELOAD: a write to a hard disk or to an
 * inexpensive flash memory. The data is written by the real fdatasync.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <time.h>

#define LEAST_NS 4000000L
#define SECOND_NS 1000000000L

int fdatasync(int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += LEAST_NS;
	end.tv_sec += end.tv_nsec / SECOND_NS;
	end.tv_nsec %= SECOND_NS;
	int result = real(fd);
	int error = errno;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
	errno = error;
	return result;
}
