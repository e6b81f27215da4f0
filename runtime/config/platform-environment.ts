/**
 * What programs of the machine need of an environment, and nothing that could be a secret. `/proc/<pid>/environ` shows the variables
 * that a process was started with to every process of the same user, so no process of the suite is started with more.
 */
const PLATFORM =
  /^(PATH|HOME|USER|LOGNAME|SHELL|PWD|HOSTNAME|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|CI|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|XDG_\w+|NODE_(OPTIONS|ENV|EXTRA_CA_CERTS|COMPILE_CACHE|DISABLE_COMPILE_CACHE|V8_COVERAGE|NO_WARNINGS|USE_ENV_PROXY)|SSL_CERT_(FILE|DIR))$/;

/** What libraries read by themselves wherever they run; a URL of a proxy or a header of a collector may hold a password. */
const OF_LIBRARIES = /^(OTEL_\w+|(http|https|all|no)_proxy)$/i;

/** What installers read as well: where packages come from, with which password. */
const OF_INSTALLERS = /^(UV_\w+|PIP_\w+|NETRC)$/;

export function platformEnvironment(env: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  return matching(env, (name) => PLATFORM.test(name));
}

/** To be handed to a process when it runs, not to be started with. */
export function libraryEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return matching(env, (name) => OF_LIBRARIES.test(name));
}

/** For a program that fetches other programs, and ends then. */
export function installerEnvironment(): NodeJS.ProcessEnv {
  const patterns = [PLATFORM, OF_LIBRARIES, OF_INSTALLERS];
  return matching(process.env, (name) => patterns.some((pattern) => pattern.test(name)));
}

function matching(env: NodeJS.ProcessEnv, isWanted: (name: string) => boolean): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => isWanted(name)));
}
