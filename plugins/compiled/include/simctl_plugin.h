/* What a switch or checkpoint plugin in C needs of Slurm: the types of the plugin guides, the
 * functions a plugin has to have, and those of libslurm that it may call.
 *
 * Names and meanings are those of the guides; nothing here is copied from Slurm's sources. A plugin
 * that includes Slurm's own headers needs this one not. */
#ifndef SIMCTL_PLUGIN_H
#define SIMCTL_PLUGIN_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLURM_SUCCESS 0
#define SLURM_ERROR -1
#define NO_VAL 0xfffffffeu
#define NO_VAL16 0xfffeu
#define NO_VAL64 0xfffffffffffffffeull
#define INFINITE 0xffffffffu
#define SLURM_BATCH_SCRIPT 0xfffffffeu
#define ESLURM_INVALID_JOB_ID 2017
#define ESLURM_ALREADY_DONE 2021
#define ESLURM_NOT_SUPPORTED 2036
#define ESLURM_DISABLED 2037
#define ESLURM_SWITCH_MIN 3000
#define ESLURM_SWITCH_MAX 3099

#ifndef TRUE
#define TRUE true
#define FALSE false
#endif

/* ---- what every plugin says of itself ---- */

extern const char plugin_name[];
extern const char plugin_type[];
extern const uint32_t plugin_version;
int init(void);		/* may be left out */
void fini(void);	/* may be left out */

/* ---- types ---- */

typedef void *switch_jobinfo_t;		/* a step's credential: the plugin's own */
typedef void *switch_node_info_t;	/* the switch state of a node: the plugin's own */
typedef void *check_jobinfo_t;		/* a checkpoint record: the plugin's own */
typedef struct buf *Buf;

/* ---- the switch plugin guide, version 0: a plugin has all of them ---- */

int switch_p_libstate_save(char *dir_name);
int switch_p_libstate_restore(char *dir_name);
bool switch_p_no_frag(void);
int switch_p_clear_node_state(void);
int switch_p_alloc_node_info(switch_node_info_t *switch_node);
int switch_p_build_node_info(switch_node_info_t switch_node);
int switch_p_pack_node_info(switch_node_info_t switch_node, Buf buffer);
int switch_p_unpack_node_info(switch_node_info_t switch_node, Buf buffer);
void switch_p_free_node_info(switch_node_info_t switch_node);
char *switch_p_sprintf_node_info(switch_node_info_t switch_node, char *buf, size_t size);
int switch_p_alloc_jobinfo(switch_jobinfo_t *switch_job);
int switch_p_build_jobinfo(switch_jobinfo_t switch_job, char *nodelist, int nprocs, int cyclic_alloc);
switch_jobinfo_t switch_p_copy_jobinfo(switch_jobinfo_t switch_job);
void switch_p_free_jobinfo(switch_jobinfo_t switch_job);
int switch_p_pack_jobinfo(switch_jobinfo_t switch_job, Buf buffer);
int switch_p_unpack_jobinfo(switch_jobinfo_t switch_job, Buf buffer);
int switch_p_get_jobinfo(switch_jobinfo_t switch_job, int data_type, void *data);
int switch_p_job_step_complete(switch_jobinfo_t switch_job, char *nodelist);
void switch_p_print_jobinfo(FILE *fp, switch_jobinfo_t switch_job);
char *switch_p_sprint_jobinfo(switch_jobinfo_t switch_job, char *buf, size_t size);
int switch_p_get_data_jobinfo(switch_jobinfo_t switch_job, int key, void *resulting_data);
int switch_p_node_init(void);
int switch_p_node_fini(void);
int switch_p_job_preinit(switch_jobinfo_t switch_job);
int switch_p_job_init(switch_jobinfo_t switch_job, uid_t uid);
int switch_p_job_attach(switch_jobinfo_t switch_job, char ***env, uint32_t nodeid, uint32_t procid,
			uint32_t nnodes, uint32_t nprocs, uint32_t rank);
int switch_p_job_fini(switch_jobinfo_t switch_job);
int switch_p_job_postfini(switch_jobinfo_t switch_job, uid_t pgid, uint32_t job_id, uint32_t step_id);
int switch_p_get_errno(void);
char *switch_p_strerror(int errnum);

/* ---- the checkpoint plugin guide: a plugin has all of them ---- */

enum { CHECK_ABLE, CHECK_DISABLE, CHECK_ENABLE, CHECK_CREATE, CHECK_VACATE, CHECK_RESTART,
       CHECK_ERROR, CHECK_REQUEUE };

/* Slurm's own records, of which these are the fields that simctl fills in. It finds them by their
 * names in the plugin's debug information (cc -g): a plugin that is built with Slurm's own headers
 * has others between them, and is given these all the same. */

struct job_record {			/* a job in slurmctld */
	uint32_t job_id, user_id, group_id, job_state, priority, time_limit, array_job_id, array_task_id,
		exit_code;
	uint16_t restart_cnt, batch_flag, ckpt_interval;
	time_t start_time, end_time;
	char *name, *account, *partition, *nodes;
	check_jobinfo_t check_job;
};

typedef struct slurm_step_layout {	/* where the tasks of a step are */
	char *node_list;
	uint32_t node_cnt, task_cnt, task_dist;
	uint16_t *tasks;		/* how many, by node */
	uint32_t **tids;		/* which, by node */
} slurm_step_layout_t;

struct step_record {			/* a step in slurmctld */
	struct job_record *job_ptr;
	uint32_t step_id;
	uint16_t ckpt_interval;
	time_t start_time;
	char *name, *ckpt_dir;
	slurm_step_layout_t *step_layout;
	check_jobinfo_t check_job;	/* the plugin's record of the step */
};

typedef struct {			/* a task in slurmstepd */
	int id, gtid;			/* its rank on the node, and in the step */
	pid_t pid;
	bool exited;
} stepd_step_task_info_t;

typedef struct {			/* a step in slurmstepd */
	uint32_t jobid, stepid, nnodes, nodeid, ntasks, node_tasks;
	uid_t uid;
	gid_t gid;
	bool batch;
	pid_t jmgr_pid, pgid;
	char *cwd;
	char **env;			/* what tasks get; stepd_prefork may add to it by setenvf */
	stepd_step_task_info_t **task;
	switch_jobinfo_t *switch_job;
} stepd_step_rec_t;

int slurm_ckpt_alloc_job(check_jobinfo_t *jobinfo);
int slurm_ckpt_free_job(check_jobinfo_t jobinfo);
int slurm_ckpt_pack_job(check_jobinfo_t jobinfo, Buf buffer, uint16_t protocol_version);
int slurm_ckpt_unpack_job(check_jobinfo_t jobinfo, Buf buffer, uint16_t protocol_version);
check_jobinfo_t slurm_ckpt_copy_job(check_jobinfo_t jobinfo);
int slurm_ckpt_op(uint32_t job_id, uint32_t step_id, struct step_record *step_ptr, uint16_t op,
		  uint16_t data, char *image_dir, time_t *event_time, uint32_t *error_code,
		  char **error_msg);
int slurm_ckpt_comp(struct step_record *step_ptr, time_t event_time, uint32_t error_code,
		    char *error_msg);
int slurm_ckpt_stepd_prefork(void *slurmd_job);
int slurm_ckpt_signal_tasks(void *slurmd_job, char *image_dir);
int slurm_ckpt_restart_task(void *slurmd_job, char *image_dir, int gtid);

/* What slurmctld has for checkpoint plugins. srun_exec has the srun of the step that the call is about
 * run a program, named by the first of its words; NULL at the end. checkpoint_tasks has the nodes call
 * slurm_ckpt_signal_tasks, and waits; so it belongs into a thread. find_job_record gives a copy of the
 * record as it is now. */
int srun_exec(struct step_record *step_ptr, char **argv);
int checkpoint_tasks(uint32_t job_id, uint32_t step_id, time_t begin_time, char *image_dir,
		     uint16_t max_wait, char *nodelist);
int job_step_signal(uint32_t job_id, uint32_t step_id, uint16_t signal, uint16_t flags, uid_t uid);
struct job_record *find_job_record(uint32_t job_id);

/* A thread holds slurmctld's locks while it changes records; a call holds them already. */
typedef enum { NO_LOCK, READ_LOCK, WRITE_LOCK } lock_level_t;
typedef struct {
	lock_level_t conf, job, node, part, fed;
} slurmctld_lock_t;
void lock_slurmctld(slurmctld_lock_t levels);
void unlock_slurmctld(slurmctld_lock_t levels);

/* ---- memory: zero, and enough of it, or the process ends ---- */

void *slurm_xcalloc(size_t count, size_t size, bool clear, bool try_it, const char *file, int line,
		    const char *function);
void *slurm_xrecalloc(void **item, size_t count, size_t size, bool clear, bool try_it,
		      const char *file, int line, const char *function);
void slurm_xfree(void **item);

#define xmalloc(size) slurm_xcalloc(1, size, true, false, __FILE__, __LINE__, __func__)
#define xcalloc(count, size) slurm_xcalloc(count, size, true, false, __FILE__, __LINE__, __func__)
#define try_xmalloc(size) slurm_xcalloc(1, size, true, true, __FILE__, __LINE__, __func__)
#define xrealloc(item, size) \
	slurm_xrecalloc((void **) &(item), 1, size, true, false, __FILE__, __LINE__, __func__)
#define xfree(item) slurm_xfree((void **) &(item))

/* ---- texts ---- */

char *slurm_xstrdup(const char *text);
char *slurm_xstrndup(const char *text, size_t most);
char *slurm_xstrdup_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_xstrcat(char **text, const char *more);
void slurm_xstrcatchar(char **text, char c);
void slurm_xstrfmtcat(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int slurm_xstrcmp(const char *one, const char *other);
int slurm_xstrncmp(const char *one, const char *other, size_t most);
int slurm_xstrcasecmp(const char *one, const char *other);

#define xstrdup(text) slurm_xstrdup(text)
#define xstrndup(text, most) slurm_xstrndup(text, most)
#define xstrdup_printf(...) slurm_xstrdup_printf(__VA_ARGS__)
#define xstrcat(text, more) slurm_xstrcat(&(text), more)
#define xstrcatchar(text, c) slurm_xstrcatchar(&(text), c)
#define xstrfmtcat(text, ...) slurm_xstrfmtcat(&(text), __VA_ARGS__)
#define xstrcmp(one, other) slurm_xstrcmp(one, other)
#define xstrncmp(one, other, most) slurm_xstrncmp(one, other, most)
#define xstrcasecmp(one, other) slurm_xstrcasecmp(one, other)

/* ---- the log: printf's formats ---- */

void slurm_fatal(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
int slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_debug2(const char *format, ...) __attribute__((format(printf, 1, 2)));
void slurm_debug3(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define fatal(...) slurm_fatal(__VA_ARGS__)
#define error(...) slurm_error(__VA_ARGS__)
#define info(...) slurm_info(__VA_ARGS__)
#define verbose(...) slurm_verbose(__VA_ARGS__)
#define debug(...) slurm_debug(__VA_ARGS__)
#define debug2(...) slurm_debug2(__VA_ARGS__)
#define debug3(...) slurm_debug3(__VA_ARGS__)

/* ---- Buf: numbers are big endian, texts end with their NUL; unpacking returns SLURM_ERROR where
 * there is too little ---- */

struct buf {
	uint32_t magic;
	char *head;
	uint32_t size;
	uint32_t processed;
	bool mmaped;
};

#define get_buf_data(buffer) ((buffer)->head)
#define get_buf_offset(buffer) ((buffer)->processed)
#define set_buf_offset(buffer, offset) ((buffer)->processed = (offset))
#define remaining_buf(buffer) ((buffer)->size - (buffer)->processed)
#define size_buf(buffer) ((buffer)->size)

Buf slurm_init_buf(uint32_t size);
Buf slurm_create_buf(char *data, uint32_t size);
void slurm_free_buf(Buf buffer);
void slurm_pack8(uint8_t value, Buf buffer);
void slurm_pack16(uint16_t value, Buf buffer);
void slurm_pack32(uint32_t value, Buf buffer);
void slurm_pack64(uint64_t value, Buf buffer);
void slurm_pack_time(time_t value, Buf buffer);
void slurm_packdouble(double value, Buf buffer);
void slurm_packmem(const char *bytes, uint32_t length, Buf buffer);
void slurm_packstr(const char *text, Buf buffer);
void slurm_pack16_array(uint16_t *values, uint32_t count, Buf buffer);
void slurm_pack32_array(uint32_t *values, uint32_t count, Buf buffer);
void slurm_packstr_array(char **texts, uint32_t count, Buf buffer);
int slurm_unpack8(uint8_t *value, Buf buffer);
int slurm_unpack16(uint16_t *value, Buf buffer);
int slurm_unpack32(uint32_t *value, Buf buffer);
int slurm_unpack64(uint64_t *value, Buf buffer);
int slurm_unpack_time(time_t *value, Buf buffer);
int slurm_unpackdouble(double *value, Buf buffer);
int slurm_unpackmem(char *bytes, uint32_t *length, Buf buffer);
int slurm_unpackmem_ptr(char **bytes, uint32_t *length, Buf buffer);
int slurm_unpackmem_xmalloc(char **bytes, uint32_t *length, Buf buffer);
int slurm_unpackstr_xmalloc(char **text, uint32_t *length, Buf buffer);
int slurm_unpack16_array(uint16_t **values, uint32_t *count, Buf buffer);
int slurm_unpack32_array(uint32_t **values, uint32_t *count, Buf buffer);
int slurm_unpackstr_array(char ***texts, uint32_t *count, Buf buffer);

#define init_buf slurm_init_buf
#define create_buf slurm_create_buf
#define free_buf slurm_free_buf
#define pack8 slurm_pack8
#define pack16 slurm_pack16
#define pack32 slurm_pack32
#define pack64 slurm_pack64
#define pack_time slurm_pack_time
#define packdouble slurm_packdouble
#define packmem slurm_packmem
#define packstr slurm_packstr
#define pack16_array slurm_pack16_array
#define pack32_array slurm_pack32_array
#define packstr_array slurm_packstr_array
#define unpack8 slurm_unpack8
#define unpack16 slurm_unpack16
#define unpack32 slurm_unpack32
#define unpack64 slurm_unpack64
#define unpack_time slurm_unpack_time
#define unpackdouble slurm_unpackdouble
#define unpackmem slurm_unpackmem
#define unpackmem_ptr slurm_unpackmem_ptr
#define unpackmem_xmalloc slurm_unpackmem_xmalloc
#define unpackstr_xmalloc slurm_unpackstr_xmalloc
#define unpack16_array slurm_unpack16_array
#define unpack32_array slurm_unpack32_array
#define unpackstr_array slurm_unpackstr_array

/* As Slurm's macros: unpack, or go to the label unpack_error of the function. */
#define safe_unpack8(value, buffer) do { if (unpack8(value, buffer)) goto unpack_error; } while (0)
#define safe_unpack16(value, buffer) do { if (unpack16(value, buffer)) goto unpack_error; } while (0)
#define safe_unpack32(value, buffer) do { if (unpack32(value, buffer)) goto unpack_error; } while (0)
#define safe_unpack64(value, buffer) do { if (unpack64(value, buffer)) goto unpack_error; } while (0)
#define safe_unpackstr_xmalloc(text, length, buffer) \
	do { if (unpackstr_xmalloc(text, length, buffer)) goto unpack_error; } while (0)
#define safe_unpackmem_xmalloc(bytes, length, buffer) \
	do { if (unpackmem_xmalloc(bytes, length, buffer)) goto unpack_error; } while (0)

/* ---- environments: arrays of NAME=value that xmalloc gave, NULL at the end ---- */

int slurm_setenvpf(char ***env, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int slurm_env_array_overwrite(char ***env, const char *name, const char *value);
int slurm_env_array_overwrite_fmt(char ***env, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void slurm_unsetenvp(char **env, const char *name);
char *slurm_getenvp(char **env, const char *name);

#define setenvpf slurm_setenvpf
#define setenvf slurm_setenvpf
#define env_array_overwrite slurm_env_array_overwrite
#define env_array_overwrite_fmt slurm_env_array_overwrite_fmt
#define unsetenvp slurm_unsetenvp
#define getenvp slurm_getenvp

/* ---- slurm.conf: texts that xfree releases ---- */

char *slurm_get_state_save_location(void);

/* ---- errors ---- */

int slurm_get_errno(void);
void slurm_seterrno(int number);
char *slurm_strerror(int number);

#define slurm_seterrno_ret(number) \
	do { slurm_seterrno(number); return (number) ? SLURM_ERROR : SLURM_SUCCESS; } while (0)

/* ---- hosts, such as n[1-4]; what shift and next give is freed with free() ---- */

typedef struct hostlist *hostlist_t;
typedef struct hostlist_iterator *hostlist_iterator_t;

hostlist_t slurm_hostlist_create(const char *hosts);
hostlist_t slurm_hostlist_copy(hostlist_t hosts);
void slurm_hostlist_destroy(hostlist_t hosts);
int slurm_hostlist_count(hostlist_t hosts);
int slurm_hostlist_find(hostlist_t hosts, const char *name);
int slurm_hostlist_push(hostlist_t hosts, const char *more);
char *slurm_hostlist_nth(hostlist_t hosts, int place);
char *slurm_hostlist_shift(hostlist_t hosts);
void slurm_hostlist_uniq(hostlist_t hosts);
char *slurm_hostlist_ranged_string_xmalloc(hostlist_t hosts);
hostlist_iterator_t slurm_hostlist_iterator_create(hostlist_t hosts);
void slurm_hostlist_iterator_reset(hostlist_iterator_t iterator);
void slurm_hostlist_iterator_destroy(hostlist_iterator_t iterator);
char *slurm_hostlist_next(hostlist_iterator_t iterator);

#define hostlist_create slurm_hostlist_create
#define hostlist_copy slurm_hostlist_copy
#define hostlist_destroy slurm_hostlist_destroy
#define hostlist_count slurm_hostlist_count
#define hostlist_find slurm_hostlist_find
#define hostlist_push slurm_hostlist_push
#define hostlist_nth slurm_hostlist_nth
#define hostlist_shift slurm_hostlist_shift
#define hostlist_uniq slurm_hostlist_uniq
#define hostlist_ranged_string_xmalloc slurm_hostlist_ranged_string_xmalloc
#define hostlist_iterator_create slurm_hostlist_iterator_create
#define hostlist_iterator_reset slurm_hostlist_iterator_reset
#define hostlist_iterator_destroy slurm_hostlist_iterator_destroy
#define hostlist_next slurm_hostlist_next

/* ---- lists of pointers ---- */

typedef struct list *List;
typedef struct list_iterator *ListIterator;
typedef void (*ListDelF)(void *item);
typedef int (*ListCmpF)(void *one, void *other);	/* given where the two items stand */
typedef int (*ListFindF)(void *item, void *key);
typedef int (*ListForF)(void *item, void *argument);

List slurm_list_create(ListDelF release);
void slurm_list_destroy(List list);
void *slurm_list_append(List list, void *item);
void *slurm_list_push(List list, void *item);
void *slurm_list_pop(List list);
int slurm_list_count(List list);
void *slurm_list_find_first(List list, ListFindF is_it, void *key);
int slurm_list_delete_all(List list, ListFindF is_it, void *key);
int slurm_list_for_each(List list, ListForF visit, void *argument);
void slurm_list_sort(List list, ListCmpF compare);
ListIterator slurm_list_iterator_create(List list);
void slurm_list_iterator_reset(ListIterator iterator);
void slurm_list_iterator_destroy(ListIterator iterator);
void *slurm_list_next(ListIterator iterator);
void *slurm_list_remove(ListIterator iterator);
int slurm_list_delete_item(ListIterator iterator);

#define list_create slurm_list_create
#define list_destroy slurm_list_destroy
#define list_append slurm_list_append
#define list_push slurm_list_push
#define list_pop slurm_list_pop
#define list_count slurm_list_count
#define list_find_first slurm_list_find_first
#define list_delete_all slurm_list_delete_all
#define list_for_each slurm_list_for_each
#define list_sort slurm_list_sort
#define list_iterator_create slurm_list_iterator_create
#define list_iterator_reset slurm_list_iterator_reset
#define list_iterator_destroy slurm_list_iterator_destroy
#define list_next slurm_list_next
#define list_remove slurm_list_remove
#define list_delete_item slurm_list_delete_item

/* ---- bit strings; -1 where there is no such bit ---- */

typedef struct bits bitstr_t;

bitstr_t *slurm_bit_alloc(int64_t count);
void slurm_bit_free(bitstr_t *bits);
int64_t slurm_bit_size(bitstr_t *bits);
int slurm_bit_test(bitstr_t *bits, int64_t place);
void slurm_bit_set(bitstr_t *bits, int64_t place);
void slurm_bit_clear(bitstr_t *bits, int64_t place);
void slurm_bit_nset(bitstr_t *bits, int64_t first, int64_t last);
void slurm_bit_nclear(bitstr_t *bits, int64_t first, int64_t last);
int64_t slurm_bit_ffs(bitstr_t *bits);
int64_t slurm_bit_ffc(bitstr_t *bits);
int64_t slurm_bit_fls(bitstr_t *bits);
int64_t slurm_bit_noc(bitstr_t *bits, int64_t many, int64_t from);
int64_t slurm_bit_set_count(bitstr_t *bits);

#define bit_alloc slurm_bit_alloc
#define bit_free slurm_bit_free
#define bit_size slurm_bit_size
#define bit_test slurm_bit_test
#define bit_set slurm_bit_set
#define bit_clear slurm_bit_clear
#define bit_nset slurm_bit_nset
#define bit_nclear slurm_bit_nclear
#define bit_ffs slurm_bit_ffs
#define bit_ffc slurm_bit_ffc
#define bit_fls slurm_bit_fls
#define bit_noc slurm_bit_noc
#define bit_set_count slurm_bit_set_count

#ifdef __cplusplus
}
#endif

#endif
