// Packs the suite, its command and its library: `npm run pack` prints the path of the tarball, which `npm install` and `npx` take.

import { join } from "node:path";
import { projectRoot } from "../gen/command.ts";
import { packPackage } from "./pack.ts";

console.log(await packPackage(join(projectRoot, ".toolbus", "package", "toolbus")));
