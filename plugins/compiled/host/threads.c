/* Threads of a plugin: each begins, waits and goes on when the emulator says so.
 *
 * A thread has a socket of its own, and only one runs at a time: whatever blocks is asked of the
 * emulator, which lets virtual time pass or another thread go on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "host.h"

__thread bool making_thread;

#define FOR_EVER UINT64_MAX

static bool any_thread;	/* whether the plugin has ever begun one */

struct birth {
	void *(*body)(void *);
	void *argument;
	int socket;
};

static void *live(void *given)
{
	struct birth birth = *(struct birth *) given;
	free(given);
	thread_socket = birth.socket;
	ask_begin('B');
	ask();
	void *result = birth.body(birth.argument);
	close(thread_socket);
	thread_socket = -1;
	return result;
}

/* The key by which the emulator knows what a thread waits for; addresses never show in a trace. */
static uint64_t key(const void *object) { return (uint64_t) object; }

/* Wait until *object* is notified, or until a moment; return whether it was. */
static bool wait_for(const void *object, uint64_t until_us)
{
	struct frame *f = ask_begin('W');
	put_u64(f, key(object));
	put_u64(f, until_us);
	return get_u8(ask());
}

static void notify(const void *object, bool all)
{
	if (my_socket() < 0)
		return;
	struct frame *f = ask_begin('V');
	put_u64(f, key(object));
	put_u8(f, all);
	tell();
}

typedef int (*creator)(pthread_t *, const pthread_attr_t *, void *(*) (void *), void *);

static creator real_create(void)
{
	static creator real;
	if (!real)
		real = (creator) dlsym(RTLD_NEXT, "pthread_create");
	return real;
}

int begin_thread(pthread_t *thread, void *(*body)(void *), void *argument)
{
	any_thread = true;
	making_thread = true;
	int failure = real_create()(thread, NULL, body, argument);
	making_thread = false;
	return failure;
}

EXPORT int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict how,
			  void *(*body)(void *), void *restrict argument)
{
	if (my_socket() < 0)
		return EAGAIN;
	ask_begin('T');
	int socket = ask()->fd;
	if (socket < 0)
		return EAGAIN;
	struct birth *birth = malloc(sizeof *birth);
	*birth = (struct birth) {body, argument, socket};
	any_thread = true;
	making_thread = true;
	int failure = real_create()(thread, how, live, birth);
	making_thread = false;
	if (failure) {
		free(birth);
		close(socket);
	}
	struct frame *f = ask_begin('t');
	put_u64(f, (uint64_t) (failure ? 0 : *thread));
	tell();
	return failure;
}

typedef int (*joiner)(pthread_t, void **);

EXPORT int pthread_join(pthread_t thread, void **result)
{
	static joiner real;
	if (!real)
		real = (joiner) dlsym(RTLD_NEXT, "pthread_join");
	if (my_socket() >= 0) {
		struct frame *f = ask_begin('J');
		put_u64(f, (uint64_t) thread);
		ask();
	}
	return real(thread, result);
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	for (;;) {
		int failure = pthread_mutex_trylock(mutex);
		if (failure != EBUSY || my_socket() < 0)
			return failure;
		wait_for(mutex, FOR_EVER);
	}
}

typedef int (*unlocker)(pthread_mutex_t *);

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	static unlocker real;
	if (!real)
		real = (unlocker) dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	int failure = real(mutex);
	if (!failure && any_thread)
		notify(mutex, false);
	return failure;
}

static int wait_on(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_us)
{
	if (my_socket() < 0)
		return EINVAL;
	pthread_mutex_unlock(mutex);
	bool notified = wait_for(condition, until_us);
	pthread_mutex_lock(mutex);
	return notified ? 0 : ETIMEDOUT;
}

EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	return wait_on(condition, mutex, FOR_EVER);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
				  const struct timespec *restrict until)
{
	return wait_on(condition, mutex,
		       (uint64_t) until->tv_sec * 1000000 + (uint64_t) (until->tv_nsec + 999) / 1000);
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
	notify(condition, false);
	return 0;
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
	notify(condition, true);
	return 0;
}
