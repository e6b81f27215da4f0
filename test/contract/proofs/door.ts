import { open, type Proofs } from "./proof.ts";

const noMcpDoor = "The MCP door is not built.";

export const door: Proofs = {
  "DOOR-1": [
    open("/mcp/<agent> for any MCP client of 2024-11-05 to 2026-07-28", noMcpDoor),
    open("any gateway serves any request of a session", noMcpDoor),
  ],
  "DOOR-2": [
    open("a call that outlives its request is a task", noMcpDoor),
    open("an approval or a question is elicitation or input_required, else it waits for a person", noMcpDoor),
  ],
  "DOOR-3": [
    open("the door is an OAuth 2.1 resource server", noMcpDoor),
    open("credentials of a person to servers behind are that person's", noMcpDoor),
  ],
  "DOOR-4": [open("runs, replay, fork, explain, audit and health are MCP tools for operators", noMcpDoor)],
  "DOOR-5": [
    open(
      "libraries for TypeScript, Python and Go run an agent, offer functions, watch for calls and answer in a few lines",
      "Clients use the generated stubs; there are no libraries above them.",
    ),
    open("they resume by themselves", "Only the CLI does."),
  ],
};
