/* Error numbers: Slurm's are those of errno, and its own beyond. */
#define _GNU_SOURCE
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slurm.h"

char *host_strerror(int number);
char *host_conf(const char *key);

EXPORT void slurm_seterrno(int number) { errno = number; }
EXPORT int slurm_get_errno(void) { return errno; }

EXPORT char *slurm_strerror(int number)
{
	return number >= 1000 ? host_strerror(number) : strerror(number);
}

/* ---- what stands in slurm.conf ---- */

EXPORT char *slurm_get_state_save_location(void) { return host_conf("StateSaveLocation"); }
EXPORT char *slurm_get_checkpoint_type(void) { return host_conf("CheckpointType"); }
EXPORT char *slurm_get_switch_type(void) { return host_conf("SwitchType"); }
EXPORT char *slurm_get_launch_params(void) { return host_conf("LaunchParameters"); }
EXPORT uint64_t slurm_get_debug_flags(void) { return 0; }

/* ---- users ---- */

EXPORT char *slurm_uid_to_string(uid_t uid)
{
	struct passwd *found = getpwuid(uid);
	return slurm_xstrdup(found ? found->pw_name : "nobody");
}

EXPORT int slurm_uid_from_string(const char *name, uid_t *uid)
{
	struct passwd *found = getpwnam(name);
	if (!found)
		return -1;
	*uid = found->pw_uid;
	return 0;
}

/* Whether the process is a daemon of the comma separated kinds: every process here that loads a
 * plugin is one. */
EXPORT bool slurm_run_in_daemon(const char *daemons)
{
	return strstr(daemons, "slurm") != NULL;
}

ALSO(char *, uid_to_string, uid_t);
ALSO(int, uid_from_string, const char *, uid_t *);
ALSO(bool, run_in_daemon, const char *);
