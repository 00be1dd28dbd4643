/* SPDX-License-Identifier: Apache-2.0
 * launch.c: the folder, the environment, the child.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fabric_id.h"
#include "launch.h"
#include "option.h"
#include "sysfs.h"

#define PREFIX "vcx."
#define LIBRARY "libvcx.so"
#define ORPHAN_S \
	60 /* a folder without a lock file is being made, or was left by a kill in that moment */
#define EXIT_USAGE_ 2

struct launch {
	struct vcx_option o;
	char options[8192]; /* as the library reads them */
	char dir[512];	    /* the folder, "" until it is made */
	char fabric[1024];
	int lock, fabric_fd;
};

static volatile sig_atomic_t child;
static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define FORWARDED (sizeof forwarded / sizeof *forwarded)

static int say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int say(const char *fmt, ...)
{
	va_list ap;

	fputs("vcx: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return -1;
}

int vcx_launch_check(const char *opt, char *err, size_t n)
{
	struct vcx_option o = {0};

	return vcx_option_set(&o, opt, err, n);
}

static int take_options(struct launch *l, const struct vcx_launch *v)
{
	char why[256];
	size_t at = 0;

	for (int i = 0; i < v->nopts; i++) {
		if (vcx_option_set(&l->o, v->opts[i], why, sizeof why))
			return say("%s", why);
		at += (size_t)snprintf(l->options + at, sizeof l->options - at, "%s%s",
				       i ? "\n" : "", v->opts[i]);
		if (at >= sizeof l->options)
			return say("the options are longer than %zu characters",
				   sizeof l->options);
	}
	return 0;
}

/* ---- the folder ---- */
static const char *const homes[] = {"/dev/shm", "/tmp"};

/* Remove folders of ours whose lock nobody holds. */
static void clean_home(const char *home)
{
	DIR *d = opendir(home);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char dir[512], lock[600];
		struct stat s;
		int fd;

		if (strncmp(e->d_name, PREFIX, sizeof PREFIX - 1))
			continue;
		snprintf(dir, sizeof dir, "%s/%.200s", home, e->d_name);
		snprintf(lock, sizeof lock, "%s/lock", dir);
		if (lstat(dir, &s) || !S_ISDIR(s.st_mode) || s.st_uid != geteuid())
			continue;
		fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 && (errno != ENOENT || time(NULL) - s.st_mtime < ORPHAN_S))
			continue;
		if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB))
			sysfs_remove_tree(dir);
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
}

/* Fabric files that ranks of a launch shared and a kill left behind. */
static void clean_shared(void)
{
	DIR *d = opendir(VCX_SHARED_DIR);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char path[600];
		struct stat s;
		int fd;

		if (strncmp(e->d_name, VCX_SHARED_NAME, sizeof VCX_SHARED_NAME - 1))
			continue;
		snprintf(path, sizeof path, "%s/%.300s", VCX_SHARED_DIR, e->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			continue;
		if (!fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_uid == geteuid() &&
		    !flock(fd, LOCK_EX | LOCK_NB))
			unlink(path);
		close(fd);
	}
	if (d)
		closedir(d);
}

/* The lock is held before it bears its name, so that nobody takes the folder for a dead one. */
static int hold_lock(struct launch *l)
{
	char fresh[600], name[600];

	snprintf(fresh, sizeof fresh, "%s/lock.new", l->dir);
	snprintf(name, sizeof name, "%s/lock", l->dir);
	l->lock = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return l->lock < 0 || flock(l->lock, LOCK_EX | LOCK_NB) || rename(fresh, name)
		       ? errno
		       : 0;
}

static int make_folder(struct launch *l)
{
	for (unsigned i = 0; i < sizeof homes / sizeof *homes; i++)
		clean_home(homes[i]);
	clean_shared();
	for (unsigned i = 0; i < sizeof homes / sizeof *homes; i++) {
		snprintf(l->dir, sizeof l->dir, "%s/" PREFIX "XXXXXX", homes[i]);
		if (mkdtemp(l->dir))
			return hold_lock(l) ? say("%s: cannot hold its lock: %s", l->dir,
						  strerror(errno))
					    : 0;
	}
	l->dir[0] = 0;
	return say("no folder can be made in /dev/shm or /tmp: %s", strerror(errno));
}

/* The fabric's file: our own in the folder, or one that several launchers share and the last one removes. */
static int make_fabric(struct launch *l, uint32_t *id)
{
	struct stat s;

	if (l->o.fabric[0] && l->o.fabric[0] != '/') {
		char cwd[512];

		if (!getcwd(cwd, sizeof cwd))
			return say("getcwd: %s", strerror(errno));
		snprintf(l->fabric, sizeof l->fabric, "%s/%.400s", cwd, l->o.fabric);
	} else if (l->o.fabric[0]) {
		snprintf(l->fabric, sizeof l->fabric, "%s", l->o.fabric);
	} else {
		snprintf(l->fabric, sizeof l->fabric, "%s/fabric", l->dir);
	}
	l->fabric_fd = open(l->fabric, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (l->fabric_fd < 0)
		return say("fabric file %s: %s", l->fabric, strerror(errno));
	if (!flock(l->fabric_fd, LOCK_EX | LOCK_NB) &&
	    ftruncate(l->fabric_fd, 0)) /* nobody's: what it holds is of the dead */
		return say("fabric file %s: %s", l->fabric, strerror(errno));
	if (flock(l->fabric_fd, LOCK_SH) || fstat(l->fabric_fd, &s))
		return say("fabric file %s: %s", l->fabric, strerror(errno));
	*id = vcx_fabric_id(&s);
	return 0;
}

static void clean_up(struct launch *l)
{
	if (l->fabric_fd >= 0 && l->o.fabric[0] &&
	    !flock(l->fabric_fd, LOCK_EX | LOCK_NB))
		unlink(l->fabric);
	if (l->fabric_fd >= 0)
		close(l->fabric_fd);
	if (l->dir[0])
		sysfs_remove_tree(l->dir);
	if (l->lock >= 0)
		close(l->lock);
}

/* ---- the environment ---- */
/* The sanitizer's library must be loaded before ours: take it from this program's own maps. */
static void sanitizer(char *path, size_t n)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4600];

	*path = 0;
	while (f && !*path && fgets(line, sizeof line, f)) {
		char *p = strchr(line, '/');

		if (!p || !strstr(p, "/libasan.so"))
			continue;
		p[strcspn(p, "\n")] = 0;
		snprintf(path, n, "%s", p);
	}
	if (f)
		fclose(f);
}

static int find_library(char *path, size_t n)
{
	const char *env = getenv("VCX_LIB");
	char exe[4096];
	ssize_t len;

	if (env && *env) {
		snprintf(path, n, "%s", env);
	} else {
		len = readlink("/proc/self/exe", exe, sizeof exe - 1);
		if (len < 0)
			return say("/proc/self/exe: %s", strerror(errno));
		exe[len] = 0;
		snprintf(path, n, "%s/" LIBRARY, dirname(exe));
	}
	return access(path, R_OK)
		       ? say("%s: %s; run make, or set VCX_LIB", path, strerror(errno))
		       : 0;
}

/* LD_PRELOAD is cut at blanks and colons, whatever folder this was built in: the library goes by a link in our own. */
static int set_environment(const struct launch *l)
{
	char lib[4200], link[600], san[4200], all[12800], sys[600];
	const char *old = getenv("LD_PRELOAD");

	if (find_library(lib, sizeof lib))
		return -1;
	snprintf(link, sizeof link, "%s/" LIBRARY, l->dir);
	if (symlink(lib, link))
		return say("%s: %s", link, strerror(errno));
	sanitizer(san, sizeof san);
	snprintf(all, sizeof all, "%s%s%s%s%s", san, *san ? ":" : "", link,
		 old && *old ? ":" : "", old ? old : "");
	snprintf(sys, sizeof sys, "%s/sys", l->dir);
	if (*san)
		setenv("ASAN_OPTIONS", "detect_leaks=0",
		       0); /* clients leak; that is not ours to say */
	return setenv("LD_PRELOAD", all, 1) || setenv("SYSFS_PATH", sys, 1) ||
	       setenv("VCX_FABRIC", l->fabric, 1) ||
	       setenv("VCX_OPTIONS", l->options, 1) || setenv("VCX_ACTIVE", "1", 1);
}

/* ---- the child ---- */
static void forward(int sig)
{
	if (child > 0)
		kill((pid_t)child, sig);
}

static int start(const struct launch *l, char *const argv[], const sigset_t *mask,
		 const struct sigaction *old)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return (int)pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a killed launcher leaves no command behind */
	if (getppid() != parent || set_environment(l))
		_exit(EXIT_USAGE_);
	for (unsigned i = 0; i < FORWARDED; i++)
		sigaction(forwarded[i], &old[i], NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	say("%s: %s", argv[0], strerror(errno));
	_exit(EXIT_USAGE_);
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_USAGE_;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The signals that are passed on wait from before the fork until the child's number is known: none is lost between. */
static int run(const struct launch *l, char *const argv[])
{
	struct sigaction sa = {.sa_handler = forward}, old[FORWARDED];
	int rc = EXIT_USAGE_, pid;
	sigset_t block, mask;

	sigemptyset(&block);
	for (unsigned i = 0; i < FORWARDED; i++) {
		sigaddset(&block, forwarded[i]);
		sigaction(forwarded[i], &sa, &old[i]);
	}
	sigprocmask(SIG_BLOCK, &block, &mask);
	pid = start(l, argv, &mask, old);
	child = pid;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (pid > 0)
		rc = wait_for(pid);
	else
		say("fork: %s", strerror(errno));
	child = 0;
	for (unsigned i = 0; i < FORWARDED; i++)
		sigaction(forwarded[i], &old[i], NULL);
	return rc;
}

int vcx_launch(const struct vcx_launch *v, char *const argv[])
{
	struct launch l = {.lock = -1, .fabric_fd = -1};
	char sys[600];
	int rc = EXIT_USAGE_, err;
	uint32_t id = 0;

	if (getenv("VCX_ACTIVE")) {
		if (v->nopts)
			say("this runs inside another vcx, whose options are in force: %s comes too late",
			    v->opts[0]);
		else
			execvp(argv[0], argv);
		return EXIT_USAGE_;
	}
	if (take_options(&l, v) || make_folder(&l) || make_fabric(&l, &id))
		goto out;
	snprintf(sys, sizeof sys, "%s/sys", l.dir);
	err = mkdir(sys, 0755) ? errno : sysfs_make(sys, id);
	if (err) {
		say("%s: %s", sys, strerror(err));
		goto out;
	}
	if (l.o.stats[0] && !strstr(l.o.stats, "%p"))
		unlink(l.o.stats); /* of an earlier launch */
	rc = run(&l, argv);
out:
	clean_up(&l);
	return rc;
}
