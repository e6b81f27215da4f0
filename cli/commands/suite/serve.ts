import { Argument, type Command } from "commander";
import { printNote } from "../../printing/terminal.ts";
import { foldersOfProject, projectDirectory, stateDirectory } from "../../project/project.ts";
import { protectedPaths, protectStart } from "../../project/protected.ts";
import { definitionOfService, ignoredVariables, listServices } from "../../suite/service-names.ts";

export function addServeCommand(program: Command): void {
  program
    .command("serve")
    .description("Run one service in this process, against the NATS server of NATS_URL")
    .addArgument(new Argument("<service>", "which one").choices(listServices()))
    .addHelpText("after", "\nStart it as often as you like: all instances of a service share its work.")
    .action(serve);
}

const STARTS_TOOLS: readonly string[] = ["mcp-bridge", "worker-pool"];

async function serve(service: string): Promise<void> {
  const project = projectDirectory();
  Object.assign(process.env, foldersOfProject(project, process.env));
  if (STARTS_TOOLS.includes(service)) {
    const places = { project, directory: process.env.TOOLBUS_DIRECTORY ?? stateDirectory(), env: process.env };
    protectStart(places, printNote);
    Object.assign(process.env, protectedPaths(places));
  }
  const { runService } = await import("#runtime/lifecycle/run-service.ts");
  const definition = await definitionOfService(service); // loads most of what all configurations need
  for (const line of await ignoredVariables(process.env)) printNote(line);
  await runService(definition);
}
