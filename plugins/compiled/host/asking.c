/* What the process is, and how its threads ask the emulator. */
#define _GNU_SOURCE
#include <pthread.h>

#include "host.h"

struct identity me;
int control = 3;
bool in_call;
bool host_forks;
char calling[128];
__thread int thread_socket = -1;
struct frame request;
void (*serve_meanwhile)(char what);

static pthread_t main_thread;
static __thread struct frame question;

void this_is_the_main_thread(void) { main_thread = pthread_self(); }

int my_socket(void)
{
	if (thread_socket >= 0)
		return thread_socket;
	return in_call && pthread_equal(pthread_self(), main_thread) ? control : -1;
}

void forget_socket(void)
{
	in_call = false;
	thread_socket = -1;
}

struct frame *ask_begin(char what)
{
	frame_clear(&question);
	put_u8(&question, 'U');
	put_u8(&question, (uint8_t) what);
	return &question;
}

void tell(void) { frame_send(my_socket(), &question); }

struct frame *ask(void)
{
	char what;
	tell();
	for (;;) {
		if (!frame_receive(my_socket(), &question))
			leave_now(0);
		what = (char) get_u8(&question);
		if (what == 'r')
			break;
		struct frame other = request;
		request = question;
		question = other;
		serve_meanwhile(what);
	}
	me.now_us = get_u64(&question);
	return &question;
}

void tell_text(char what, uint32_t number, const char *text)
{
	struct frame *f = ask_begin(what);
	put_u32(f, number);
	put_text(f, text);
	tell();
}
