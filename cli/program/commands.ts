import type { Command } from "commander";

/** A command as the help of `toolbus` lists it. Its module is loaded when it is named, since that takes longer than all else. */
export interface ListedCommand {
  /** Its name, and what follows it. */
  readonly term: string;
  readonly description: string;
  readonly load: () => Promise<(program: Command) => void>;
}

export const commands: readonly ListedCommand[] = [
  {
    term: "init [directory]",
    description: "Make a project: agents, a tool of each kind, and what editors need; files that exist stay",
    load: async () => (await import("../commands/suite/init.ts")).addInitCommand,
  },
  {
    term: "up [options]",
    description: "Start the whole suite on this machine, NATS included, until Ctrl-C",
    load: async () => (await import("../commands/suite/up.ts")).addUpCommand,
  },
  {
    term: "dev [options]",
    description: "Start the suite to work on a project: open the console, show what happens, follow changes of files",
    load: async () => (await import("../commands/suite/dev.ts")).addDevCommand,
  },
  {
    term: "down [options]",
    description: "Stop the suite of this machine that `up` or `dev` started, once what is in flight is finished",
    load: async () => (await import("../commands/suite/down.ts")).addDownCommand,
  },
  {
    term: "top [options]",
    description: "Show what goes on: runs, what waits, what failed, services and MCP servers, until Ctrl-C",
    load: async () => (await import("../commands/suite/top.ts")).addTopCommand,
  },
  {
    term: "run [options] <agent> <input...>",
    description: "Run an agent and show what happens until it ends",
    load: async () => (await import("../commands/runs/run.ts")).addRunCommand,
  },
  {
    term: "runs",
    description: "List, show, watch, answer, cancel, replay or fork runs",
    load: async () => (await import("../commands/runs/runs.ts")).addRunsCommand,
  },
  {
    term: "tools [options]",
    description: "List tools: of the catalogue, of an agent, or of a session; approve what changed",
    load: async () => (await import("../commands/tools/tools.ts")).addToolsCommand,
  },
  {
    term: "call [options] <tool> [arguments]",
    description: "Call a tool as an agent would, under the same policy",
    load: async () => (await import("../commands/tools/call.ts")).addCallCommand,
  },
  {
    term: "mcp [options] [agent]",
    description: "Be an agent's MCP server on stdin and stdout; show MCP servers, log in to them, or out",
    load: async () => (await import("../commands/mcp/mcp.ts")).addMcpCommand,
  },
  {
    term: "resources",
    description: "List and read resources of an agent's MCP servers",
    load: async () => (await import("../commands/tools/resources.ts")).addResourcesCommand,
  },
  {
    term: "prompts",
    description: "List, fill in and complete prompts of an agent's MCP servers",
    load: async () => (await import("../commands/tools/prompts.ts")).addPromptsCommand,
  },
  {
    term: "calls",
    description: "List, answer, read or cancel recorded tool calls",
    load: async () => (await import("../commands/tools/calls.ts")).addCallsCommand,
  },
  {
    term: "caller-socket [options] <session>",
    description: "Offer the tools of a session's caller on a unix socket, until Ctrl-C",
    load: async () => (await import("../commands/tools/caller-socket.ts")).addCallerSocketCommand,
  },
  {
    term: "agent-client [options]",
    description: "Be an MCP server on stdin and stdout, with the tools of a caller-socket",
    load: async () => (await import("../commands/tools/agent-client.ts")).addAgentClientCommand,
  },
  {
    term: "watch",
    description: "Follow a run, a space or the audit trail as it happens",
    load: async () => (await import("../commands/watch.ts")).addWatchCommand,
  },
  {
    term: "agents",
    description: "List, show, apply or delete agents",
    load: async () => (await import("../commands/agents.ts")).addAgentsCommand,
  },
  {
    term: "sessions",
    description: "List, switch, watch or close sessions",
    load: async () => (await import("../commands/sessions.ts")).addSessionsCommand,
  },
  {
    term: "answer [options] <space> <call> [result]",
    description: "Answer a tool call that waits for a person in a space",
    load: async () => (await import("../commands/spaces/answer.ts")).addAnswerCommand,
  },
  {
    term: "chat [options] <agent>",
    description: "Talk with an agent: each line is a run of one session",
    load: async () => (await import("../commands/runs/chat.ts")).addChatCommand,
  },
  {
    term: "answers [options]",
    description: "List what waits for an answer of yours, and how to give it",
    load: async () => (await import("../commands/spaces/answers.ts")).addAnswersCommand,
  },
  {
    term: "spaces",
    description: "List, create, show, speak in and watch spaces",
    load: async () => (await import("../commands/spaces/spaces.ts")).addSpacesCommand,
  },
  {
    term: "inbox [options] <session>",
    description: "Show what waits for an agent's next run",
    load: async () => (await import("../commands/spaces/inbox.ts")).addInboxCommand,
  },
  {
    term: "explain [options] <agent> <tool>",
    description: "Explain why an agent can or cannot call a tool",
    load: async () => (await import("../commands/tools/explain.ts")).addExplainCommand,
  },
  {
    term: "audit [options]",
    description: "List what the suite decided, the latest last, and follow it",
    load: async () => (await import("../commands/audit.ts")).addAuditCommand,
  },
  {
    term: "bus",
    description: "Make the keys of those who may sign in to NATS",
    load: async () => (await import("../commands/suite/bus.ts")).addBusCommand,
  },
  {
    term: "context",
    description: "Keep addresses and keys of suites elsewhere, for --context and TOOLBUS_CONTEXT",
    load: async () => (await import("../commands/suite/context.ts")).addContextCommand,
  },
  {
    term: "doctor",
    description: "Tell how well this machine keeps tools apart from the suite, and callers from each other",
    load: async () => (await import("../commands/suite/doctor.ts")).addDoctorCommand,
  },
  {
    term: "serve <service>",
    description: "Run one service in this process, against the NATS server of NATS_URL",
    load: async () => (await import("../commands/suite/serve.ts")).addServeCommand,
  },
  {
    // The last, as it completes what stands before it.
    term: "completion <shell>",
    description: "Print a script that completes commands, options and names: for bash, zsh, fish or powershell",
    load: async () => (await import("../commands/suite/completion.ts")).addCompletionCommand,
  },
];

export function nameOf({ term }: Pick<ListedCommand, "term">): string {
  return term.split(" ", 1)[0] ?? term;
}
