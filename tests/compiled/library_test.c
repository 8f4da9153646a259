/* The stand-in for Slurm's library, tried by a program of its own: it prints nothing and ends with 0. */
#include <stdarg.h>
#include <stdlib.h>

#include "simctl_plugin.h"

#define HOLD(claim) \
	do { \
		if (!(claim)) { \
			fprintf(stderr, "line %d: %s\n", __LINE__, #claim); \
			exit(1); \
		} \
	} while (0)

/* What the host has, and the library asks of it. */
void slurm_fatal(const char *format, ...)
{
	va_list values;
	va_start(values, format);
	vfprintf(stderr, format, values);
	va_end(values);
	exit(3);
}

char *host_strerror(int number) { return number == 2000 ? (char *) "two thousand" : NULL; }
char *host_conf(const char *key) { return xstrdup(key); }

static void texts(void)
{
	char *text = NULL;
	xstrcat(text, "a");
	xstrfmtcat(text, "%d", 17);
	xstrcatchar(text, 'z');
	HOLD(!strcmp(text, "a17z"));
	HOLD(xstrcmp(NULL, text) < 0 && !xstrcmp(NULL, NULL) && xstrcasecmp(text, "A17Z") == 0);
	xfree(text);
	HOLD(text == NULL);
	int *numbers = xcalloc(3, sizeof *numbers);
	numbers[2] = 5;
	xrealloc(numbers, 10 * sizeof *numbers);
	HOLD(numbers[2] == 5 && numbers[9] == 0);
	xfree(numbers);
}

static void buffers(void)
{
	Buf buffer = init_buf(1);
	uint16_t words[] = {1, 2, 3}, *got;
	pack8(7, buffer);
	pack16(0x1234, buffer);
	pack32(0xdeadbeef, buffer);
	pack64(1ull << 40, buffer);
	pack_time(-5, buffer);
	packdouble(1.5, buffer);
	packstr("text", buffer);
	packstr(NULL, buffer);
	pack16_array(words, 3, buffer);
	HOLD((uint8_t) get_buf_data(buffer)[1] == 0x12);	/* big endian */
	uint32_t end = get_buf_offset(buffer), length;
	set_buf_offset(buffer, 0);
	buffer->size = end;
	uint8_t a;
	uint16_t b;
	uint32_t c;
	uint64_t d;
	time_t when;
	double part;
	char *text;
	HOLD(!unpack8(&a, buffer) && a == 7 && !unpack16(&b, buffer) && b == 0x1234);
	HOLD(!unpack32(&c, buffer) && c == 0xdeadbeef && !unpack64(&d, buffer) && d == 1ull << 40);
	HOLD(!unpack_time(&when, buffer) && when == -5 && !unpackdouble(&part, buffer) && part == 1.5);
	HOLD(!unpackstr_xmalloc(&text, &length, buffer) && length == 5 && !strcmp(text, "text"));
	xfree(text);
	HOLD(!unpackstr_xmalloc(&text, &length, buffer) && !text && !length);
	HOLD(!unpack16_array(&got, &c, buffer) && c == 3 && got[2] == 3);
	xfree(got);
	HOLD(remaining_buf(buffer) == 0 && unpack8(&a, buffer) == SLURM_ERROR);
	/* A length that is a lie. */
	set_buf_offset(buffer, 0);
	memset(get_buf_data(buffer), 0xff, 8);
	HOLD(unpackmem_xmalloc(&text, &length, buffer) == SLURM_ERROR && get_buf_offset(buffer) == 0);
	free_buf(buffer);
}

static void hosts(void)
{
	hostlist_t list = hostlist_create("n[1-3,07-08],login,r[1-2]n[1-2]");
	HOLD(hostlist_count(list) == 10 && hostlist_find(list, "n08") == 4);
	char *name = hostlist_shift(list);
	HOLD(!strcmp(name, "n1"));
	free(name);
	hostlist_iterator_t each = hostlist_iterator_create(list);
	int count = 0;
	for (; (name = hostlist_next(each)); count++)
		free(name);
	HOLD(count == 9);
	hostlist_iterator_destroy(each);
	hostlist_destroy(list);
	list = hostlist_create("n3,n1,n2,n3,a");
	hostlist_uniq(list);
	name = hostlist_ranged_string_xmalloc(list);
	HOLD(!strcmp(name, "a,n[1-3]"));
	xfree(name);
	hostlist_destroy(list);
	list = hostlist_create("");
	HOLD(hostlist_count(list) == 0 && !hostlist_shift(list));
	hostlist_destroy(list);
	list = hostlist_create("bad[,x[1-],]y[");
	hostlist_destroy(list);
}

static void environments(void)
{
	char **env = NULL;
	HOLD(!setenvpf(&env, "ONE", "%d", 1) && env_array_overwrite(&env, "TWO", "2"));
	setenvpf(&env, "ONE", "again");
	HOLD(!strcmp(getenvp(env, "ONE"), "again") && !getenvp(env, "ON") && !env[2]);
	unsetenvp(env, "ONE");
	HOLD(!getenvp(env, "ONE") && !strcmp(env[0], "TWO=2") && !env[1]);
	xfree(env[0]);
	xfree(env);
}

static int by_size(void *one, void *other) { return **(int **) one - **(int **) other; }
static int is_it(void *item, void *key) { return *(int *) item == *(int *) key; }
static void release(void *item) { xfree(item); }

static void lists(void)
{
	List list = list_create(release);
	for (int k = 0; k < 5; k++) {
		int *item = xmalloc(sizeof *item);
		*item = 7 * k % 5;
		list_append(list, item);
	}
	list_sort(list, by_size);
	ListIterator each = list_iterator_create(list);
	for (int k = 0; k < 5; k++)
		HOLD(*(int *) list_next(each) == k);
	HOLD(!list_next(each) && list_delete_item(each) && list_count(list) == 4);
	list_iterator_destroy(each);
	int two = 2;
	HOLD(list_find_first(list, is_it, &two) && list_delete_all(list, is_it, &two) == 1);
	HOLD(!list_find_first(list, is_it, &two) && list_count(list) == 3);
	list_destroy(list);
	bitstr_t *bits = bit_alloc(70);
	bit_nset(bits, 3, 66);
	HOLD(bit_ffs(bits) == 3 && bit_fls(bits) == 66 && bit_ffc(bits) == 0 && bit_set_count(bits) == 64);
	HOLD(bit_noc(bits, 3, 10) == 67 && bit_noc(bits, 4, 0) == -1 && !bit_test(bits, 70));
	bit_free(bits);
}

int main(void)
{
	texts();
	buffers();
	hosts();
	environments();
	lists();
	HOLD(!strcmp(slurm_strerror(2000), "two thousand") && !strcmp(slurm_strerror(EPERM), strerror(EPERM)));
	return 0;
}
