import { useSignal } from "@preact/signals";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { choose } from "../parts/place.ts";
import type { RunFilter } from "./listed-runs.ts";
import { goingOn } from "./states.tsx";

const stateFilters: Readonly<Record<string, readonly RunState[]>> = {
  all: [],
  "going on": goingOn,
  "waits for its client": [RunState.REQUIRES_ACTION],
  completed: [RunState.COMPLETED],
  incomplete: [RunState.INCOMPLETE],
  failed: [RunState.FAILED],
  canceled: [RunState.CANCELED],
};

const times: Readonly<Record<string, number | undefined>> = {
  "at any time": undefined,
  "in the last 15 minutes": 15 * 60_000,
  "in the last hour": 3_600_000,
  "in the last day": 86_400_000,
  "in the last week": 7 * 86_400_000,
};

/** What the suite is asked for, as an address has it. */
export function filterFrom(query: URLSearchParams): RunFilter {
  return {
    states: stateFilters[query.get("state") ?? ""] ?? [],
    sessionId: query.get("session") ?? "",
    agent: query.get("agent") ?? "",
    tool: query.get("tool") ?? "",
    withinMs: times[query.get("accepted") ?? ""],
  };
}

/** What narrows the list, kept in the address. */
export function RunFilters({ query }: { query: URLSearchParams }) {
  return (
    <>
      <Choice label="State" name="state" options={Object.keys(stateFilters)} query={query} />
      <Choice label="Accepted" name="accepted" options={Object.keys(times)} query={query} />
      <Name label="Agent" name="agent" query={query} />
      <Name label="Tool" name="tool" query={query} />
      <Name label="Session" name="session" query={query} />
    </>
  );
}

interface FilterProps {
  readonly label: string;
  /** Of the field in the address. */
  readonly name: string;
  readonly query: URLSearchParams;
}

function Choice({ label, name, options, query }: FilterProps & { readonly options: readonly string[] }) {
  return (
    <label>
      {label}{" "}
      <select value={query.get(name) ?? options[0]} onChange={(event) => choose({ [name]: event.currentTarget.value })}>
        {options.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    </label>
  );
}

/** What is being typed stands until it is entered, though the list beside it is drawn again and again. */
function Name({ label, name, query }: FilterProps) {
  const typed = useSignal<string>();
  const enter = (input: HTMLInputElement) => {
    if (!input.checkValidity()) return;
    typed.value = undefined;
    choose({ [name]: input.value });
  };
  return (
    <label>
      {label}{" "}
      <input
        type="search"
        class="name"
        value={typed.value ?? query.get(name) ?? ""}
        pattern="[a-zA-Z0-9_\-]{0,64}"
        onInput={(event) => {
          typed.value = event.currentTarget.value;
        }}
        onChange={(event) => enter(event.currentTarget)}
      />
    </label>
  );
}
