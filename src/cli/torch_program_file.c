/* What lies in `bin` under the name of a program that links LibTorch: becomes cohort-torch beside it, which acts as that program
 * (cli/torch_program.h). C without libraries, so that each is small and starts in a fraction of a millisecond. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#include <stdint.h>
#endif

#define PATH_LIMIT 4096
static const char kTogether[] = "cohort-torch";

int main(int argc, char** argv) {
  static char path[PATH_LIMIT], together[PATH_LIMIT + sizeof kTogether];
#if defined(__APPLE__)
  uint32_t size = sizeof path;
  const long length = _NSGetExecutablePath(path, &size) == 0 ? (long)strlen(path) : -1;
#else
  const long length = (long)readlink("/proc/self/exe", path, sizeof path - 1);
#endif
  if (argc < 1 || length < 0) {
    fputs("this program cannot find its own path\n", stderr);
    return 1;
  }
  path[length] = '\0';
  const char* const slash = strrchr(path, '/');
  const size_t folder = slash == NULL ? 0 : (size_t)(slash - path) + 1;
  memcpy(together, path, folder);
  memcpy(together + folder, kTogether, sizeof kTogether);
  argv[0] = path; /* the name by which cohort-torch knows who it is, and what `ps` shows */
  execv(together, argv);
  fprintf(stderr, "%s: cannot execute %s: %s\n", path + folder, together, strerror(errno));
  return 1;
}
