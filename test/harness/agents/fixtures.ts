import { fileURLToPath } from "node:url";

/** The variables by which a suite has the agents, tools and scripted models of a folder of `test/system/fixtures`. */
export function fixturesIn(folder: string) {
  const path = (name: string) => fileURLToPath(new URL(`../../system/fixtures/${folder}/${name}`, import.meta.url));
  return { TOOLBUS_AGENTS: path("agents"), TOOLBUS_TOOLS: path("tools"), TOOLBUS_SCRIPTS: path("models") };
}
