// Loaded into each service of a fault run. At SIGUSR2 it writes what it has compiled into NODE_COMPILE_CACHE, which Node does
// by itself only at an orderly exit.

import { flushCompileCache } from "node:module";

process.on("SIGUSR2", () => flushCompileCache());
