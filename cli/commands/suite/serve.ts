import { Argument, type Command } from "commander";
import { foldersOfProject, projectDirectory } from "../../project/project.ts";
import { definitionOfService, listServices } from "../../suite/service-names.ts";

export function addServeCommand(program: Command): void {
  program
    .command("serve")
    .description("Run one service in this process, against the NATS server of NATS_URL")
    .addArgument(new Argument("<service>", "which one").choices(listServices()))
    .addHelpText("after", "\nStart it as often as you like: all instances of a service share its work.")
    .action(serve);
}

async function serve(service: string): Promise<void> {
  Object.assign(process.env, foldersOfProject(projectDirectory(), process.env));
  const { runService } = await import("#runtime/lifecycle/run-service.ts");
  await runService(await definitionOfService(service));
}
