import { NOTE, type Place, type PublicServer } from "../public-server.ts";

const EXAMPLES = "github.com/modelcontextprotocol/go-sdk/examples/server";
const SDK = "v1.8.0";
const MEMORY = ["go", "run", `${EXAMPLES}/memory@${SDK}`];
const memory = ({ directory }: Place) => [...MEMORY, "-memory", `${directory}/memory.json`];
const remember = {
  tool: "create_entities",
  arguments: () => ({ entities: [{ name: "toolbus", entityType: "bus", observations: [NOTE] }] }),
  expect: NOTE,
};

/** Servers that go run fetches and builds. */
export const GO: readonly PublicServer[] = [
  {
    name: "gopls",
    make: "Go project, Go SDK",
    command: () => ["go", "run", "golang.org/x/tools/gopls@v0.23.0", "mcp"],
    call: { tool: "go_workspace", arguments: () => ({}), expect: "module" },
  },
  {
    name: "go-memory",
    make: "MCP project, Go SDK",
    command: memory,
    short: memory,
    call: remember,
  },
  {
    name: "go-memory-http",
    make: "MCP project, Go SDK",
    command: ({ port }) => [...MEMORY, "-http", `127.0.0.1:${port}`],
    url: ({ port }) => `http://127.0.0.1:${port}`,
    call: remember,
  },
  {
    name: "go-sse",
    make: "MCP project, Go SDK",
    command: ({ port }) => ["go", "run", `${EXAMPLES}/sse@${SDK}`, "-host", "127.0.0.1", "-port", `${port}`],
    url: ({ port }) => `http://127.0.0.1:${port}/greeter1`,
    transport: "sse",
    call: { tool: "greet1", arguments: () => ({ name: NOTE }), expect: NOTE },
  },
  {
    name: "mcp-go-everything",
    make: "mark3labs, mcp-go",
    command: () => ["go", "run", "github.com/mark3labs/mcp-go/examples/everything@v1.2.1"],
    call: { tool: "echo", arguments: () => ({ message: NOTE }), expect: NOTE },
  },
  {
    name: "grafana",
    make: "Grafana, mcp-go",
    command: () => ["go", "run", "github.com/grafana/mcp-grafana/cmd/mcp-grafana@v1.6.3"],
    env: () => ({ GRAFANA_SERVICE_ACCOUNT_TOKEN: process.env.GRAFANA_SERVICE_ACCOUNT_TOKEN ?? "none" }),
    call: { tool: "list_datasources", arguments: () => ({}), expect: "datasources" },
    needs: "key GRAFANA_SERVICE_ACCOUNT_TOKEN",
  },
];
