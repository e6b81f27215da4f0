import { NOTE, type PublicServer } from "../public-server.ts";

const REFERENCE = "MCP project, Python SDK";
const time = () => ["uvx", "mcp-server-time@2026.10.19"];
const answer = { tool: "execute_query", arguments: () => ({ sql: "SELECT 6 * 7 AS answer" }), expect: "42" };

/** Servers that uvx fetches from PyPI. */
export const PYTHON: readonly PublicServer[] = [
  {
    name: "time",
    make: REFERENCE,
    command: time,
    short: time,
    call: {
      tool: "convert_time",
      arguments: () => ({ source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" }),
      expect: "21:00",
    },
  },
  {
    name: "git",
    make: REFERENCE,
    command: ({ directory }) => ["uvx", "mcp-server-git@2026.10.19", "--repository", directory],
    call: {
      tool: "git_log",
      arguments: ({ directory }) => ({ repo_path: directory, max_count: 1 }),
      expect: NOTE,
    },
  },
  {
    name: "fetch",
    make: REFERENCE,
    command: () => ["uvx", "mcp-server-fetch@2026.10.24", "--ignore-robots-txt", "--allow-private-ips"],
    call: { tool: "fetch", arguments: ({ page }) => ({ url: page, raw: true }), expect: NOTE },
  },
  {
    name: "sqlite",
    make: REFERENCE,
    command: ({ directory }) => [
      ...["uvx", "--with", "mcp<2", "mcp-server-sqlite@2025.4.25"], // it is older than the SDK that it would be given
      ...["--db-path", `${directory}/rows.db`],
    ],
    call: { tool: "read_query", arguments: () => ({ query: "SELECT 6 * 7 AS answer" }), expect: "42" },
  },
  {
    name: "calculator",
    make: "community, Python SDK (FastMCP 1)",
    command: () => ["uvx", "mcp-server-calculator@0.2.1"],
    call: { tool: "calculate", arguments: () => ({ expression: "6 * 7" }), expect: "42" },
  },
  {
    name: "motherduck",
    make: "MotherDuck, FastMCP (Python)",
    command: () => ["uvx", "mcp-server-motherduck@1.1.0", "--db-path", ":memory:", "--read-write"],
    call: answer,
  },
  {
    name: "motherduck-http",
    make: "MotherDuck, FastMCP (Python)",
    command: ({ port }) => [
      ...["uvx", "mcp-server-motherduck@1.1.0", "--db-path", ":memory:", "--read-write"],
      ...["--transport", "http", "--host", "127.0.0.1", "--port", `${port}`],
    ],
    url: ({ port }) => `http://127.0.0.1:${port}/mcp`,
    call: answer,
  },
  {
    name: "aws-documentation",
    make: "AWS, Python SDK (FastMCP 1)",
    command: () => ["uvx", "awslabs.aws-documentation-mcp-server@1.2.3"],
    call: { tool: "search_documentation", arguments: () => ({ search_phrase: "S3" }), expect: "S3" },
    needs: "network",
  },
];
