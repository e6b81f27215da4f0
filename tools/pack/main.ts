// Packs the library for TypeScript: `npm run pack:library` prints the path of the tarball, which `npm install` and `npm publish` take.

import { join } from "node:path";
import { projectRoot } from "../gen/command.ts";
import { packLibrary } from "./pack.ts";

console.log(await packLibrary(join(projectRoot, ".toolbus", "library", "toolbus")));
