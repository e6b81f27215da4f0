import { parseArgs } from "node:util";
import { projectRoot } from "../gen/command.ts";
import { releasedImage } from "./image.ts";
import { releaseContract } from "./release.ts";

try {
  const { values } = parseArgs({ options: { breaking: { type: "boolean" }, version: { type: "string" } } });
  const { version, breaking = false } = values;
  const day = new Date().toISOString().slice(0, 10);
  await releaseContract(projectRoot, { isBreaking: breaking, day, ...(version !== undefined && { version }) });
  console.log(`${releasedImage} holds the contract as it stands${version ? `, version ${version}` : ""}; commit it.`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
