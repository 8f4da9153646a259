/* Files: a plugin sees the simulated disk of its host.
 *
 * The emulator opens: it hands over a file in memory that holds what the simulated one does, and
 * takes in what was written after each call of the plugin. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"

#define MOST_FILES 256

static bool on_disk[MOST_FILES];	/* which descriptors are files of the simulated disk */

static int fail(int number)
{
	errno = number;
	return -1;
}

static int open_on_disk(const char *path, int flags, mode_t mode)
{
	if (my_socket() < 0)
		return fail(EACCES);
	struct frame *f = ask_begin('O');
	put_text(f, path);
	put_u32(f, (uint32_t) flags);
	put_u32(f, mode);
	f = ask();
	int failure = (int) get_u32(f);
	if (failure)
		return fail(failure);
	if (f->fd < 0)
		return fail(EMFILE);
	if (flags & O_APPEND)
		fcntl(f->fd, F_SETFL, O_APPEND);
	lseek(f->fd, 0, SEEK_SET);
	if (f->fd < MOST_FILES)
		on_disk[f->fd] = true;
	return f->fd;
}

/* Tell the emulator that a file of its is closed: what it holds is to be taken in now. */
static void tell_closed(int fd)
{
	struct stat found;
	if (fd < 0 || fd >= MOST_FILES || !on_disk[fd] || my_socket() < 0 || fstat(fd, &found))
		return;
	on_disk[fd] = false;
	struct frame *f = ask_begin('c');
	put_u64(f, found.st_ino);
	tell();
}

typedef int (*closer)(int);

EXPORT int close(int fd)
{
	static closer real;
	if (!real)
		real = (closer) dlsym(RTLD_NEXT, "close");
	tell_closed(fd);
	return real(fd);
}

typedef int (*file_closer)(FILE *);

EXPORT int fclose(FILE *file)
{
	static file_closer real;
	if (!real)
		real = (file_closer) dlsym(RTLD_NEXT, "fclose");
	fflush(file);
	tell_closed(fileno(file));
	return real(file);
}

#define WITH_MODE(flags, mode) \
	mode_t mode = 0; \
	if ((flags) & O_CREAT) { \
		va_list rest; \
		va_start(rest, flags); \
		mode = va_arg(rest, mode_t); \
		va_end(rest); \
	}

EXPORT int open(const char *path, int flags, ...)
{
	WITH_MODE(flags, mode)
	return open_on_disk(path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
	WITH_MODE(flags, mode)
	return open_on_disk(path, flags, mode);
}

EXPORT int openat(int directory, const char *path, int flags, ...)
{
	WITH_MODE(flags, mode)
	if (directory != AT_FDCWD && path[0] != '/')
		return fail(ENOSYS);
	return open_on_disk(path, flags, mode);
}

EXPORT int creat(const char *path, mode_t mode)
{
	return open_on_disk(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

static int flags_of(const char *mode)
{
	int both = strchr(mode, '+') ? O_RDWR : 0;
	int only_new = strchr(mode, 'x') ? O_EXCL : 0;
	switch (mode[0]) {
	case 'r':
		return both ? O_RDWR : O_RDONLY;
	case 'w':
		return (both ? both : O_WRONLY) | O_CREAT | O_TRUNC | only_new;
	case 'a':
		return (both ? both : O_WRONLY) | O_CREAT | O_APPEND;
	default:
		return -1;
	}
}

EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
	int flags = flags_of(mode);
	if (flags < 0) {
		errno = EINVAL;
		return NULL;
	}
	int fd = open_on_disk(path, flags, 0666);
	if (fd < 0)
		return NULL;
	FILE *file = fdopen(fd, mode);
	if (!file)
		close(fd);
	return file;
}

EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode) { return fopen(path, mode); }

/* ---- names ---- */

/* Ask about a path; the answer begins with the number of an error, which is taken off. */
static int on_path(char what, const char *path, const char *other, uint32_t number, struct frame **answer)
{
	if (my_socket() < 0)
		return fail(EACCES);
	if (!path)
		return fail(EFAULT);
	struct frame *f = ask_begin('P');
	put_u8(f, (uint8_t) what);
	put_text(f, path);
	put_text(f, other);
	put_u32(f, number);
	f = ask();
	int failure = (int) get_u32(f);
	if (failure)
		return fail(failure);
	if (answer)
		*answer = f;
	return 0;
}

EXPORT int unlink(const char *path) { return on_path('u', path, NULL, 0, NULL); }
EXPORT int remove(const char *path) { return on_path('u', path, NULL, 0, NULL); }
EXPORT int rmdir(const char *path) { return on_path('r', path, NULL, 0, NULL); }
EXPORT int mkdir(const char *path, mode_t mode) { return on_path('m', path, NULL, mode, NULL); }
EXPORT int rename(const char *path, const char *to) { return on_path('n', path, to, 0, NULL); }
EXPORT int access(const char *path, int how) { return on_path('a', path, NULL, (uint32_t) how, NULL); }
EXPORT int link(const char *path, const char *to) { return on_path('l', path, to, 0, NULL); }
EXPORT int truncate(const char *path, off_t length)
{
	int fd = open_on_disk(path, O_WRONLY, 0);
	if (fd < 0)
		return -1;
	int result = ftruncate(fd, length);
	close(fd);
	return result;
}

/* The simulated disk keeps who made a file, and with which rights; these change nothing. */
EXPORT int chmod(const char *path, mode_t mode) { (void) mode; return on_path('s', path, NULL, 0, NULL); }
EXPORT int chown(const char *path, uid_t user, gid_t group)
{
	(void) user;
	(void) group;
	return on_path('s', path, NULL, 0, NULL);
}

EXPORT int stat(const char *restrict path, struct stat *restrict found)
{
	struct frame *f;
	if (on_path('s', path, NULL, 0, &f))
		return -1;
	memset(found, 0, sizeof *found);
	found->st_mode = get_u32(f);
	found->st_uid = get_u32(f);
	found->st_size = (off_t) get_u64(f);
	found->st_nlink = 1;
	return 0;
}

EXPORT int lstat(const char *restrict path, struct stat *restrict found) { return stat(path, found); }
EXPORT int stat64(const char *restrict path, struct stat64 *restrict found)
{
	return stat(path, (struct stat *) found);
}
EXPORT int lstat64(const char *restrict path, struct stat64 *restrict found) { return stat64(path, found); }

/* ---- directories: the names as they were when it was opened ---- */

struct listing {
	char *names;		/* each ends with a NUL */
	size_t length, at;
	struct dirent entry;
	struct dirent64 entry64;
};

EXPORT DIR *opendir(const char *path)
{
	struct frame *f;
	if (on_path('d', path, NULL, 0, &f))
		return NULL;
	uint32_t length;
	const unsigned char *names = get_bytes(f, &length);
	struct listing *listing = calloc(1, sizeof *listing);
	listing->names = memcpy(malloc(length + 1), names, length + 1);
	listing->length = length;
	return (DIR *) listing;
}

static const char *next_name(struct listing *listing)
{
	if (listing->at >= listing->length)
		return NULL;
	const char *name = listing->names + listing->at;
	listing->at += strlen(name) + 1;
	return name;
}

EXPORT struct dirent *readdir(DIR *directory)
{
	struct listing *listing = (struct listing *) directory;
	const char *name = next_name(listing);
	if (!name)
		return NULL;
	snprintf(listing->entry.d_name, sizeof listing->entry.d_name, "%s", name);
	listing->entry.d_ino = 1;
	listing->entry.d_type = DT_UNKNOWN;
	return &listing->entry;
}

EXPORT struct dirent64 *readdir64(DIR *directory)
{
	struct listing *listing = (struct listing *) directory;
	const char *name = next_name(listing);
	if (!name)
		return NULL;
	snprintf(listing->entry64.d_name, sizeof listing->entry64.d_name, "%s", name);
	listing->entry64.d_ino = 1;
	listing->entry64.d_type = DT_UNKNOWN;
	return &listing->entry64;
}

EXPORT int closedir(DIR *directory)
{
	struct listing *listing = (struct listing *) directory;
	free(listing->names);
	free(listing);
	return 0;
}
