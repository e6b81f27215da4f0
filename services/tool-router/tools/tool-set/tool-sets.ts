import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { RefusedFile } from "#gen/toolbus/tool/v1/refused_file_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Offer } from "./offer.ts";
import { holdToPins } from "./pins/hold-to-pins.ts";
import type { Approvals } from "./pins/pinned-tool.ts";
import { createToolSet, type ToolSet } from "./tool-set.ts";

/** Sessions of one agent whose providers say the same have one tool set: the last of each agent is kept. */
export class ToolSets {
  readonly #last = new WeakMap<Agent, { version: number; offers: readonly Offer[]; set: ToolSet }>();

  of(
    agent: Agent,
    catalogue: {
      readonly tools: ReadonlyMap<string, Tool>;
      readonly pins: { readonly approval: Approvals };
      readonly refusedTools: ReadonlyMap<string, RefusedFile>;
      readonly version: number;
    },
    all: readonly Offer[],
  ): ToolSet {
    const offers = all.filter(saysAnything);
    const { version } = catalogue;
    const last = this.#last.get(agent);
    if (last?.version === version && areSame(last.offers, offers)) return last.set;
    const set = holdToPins(
      createToolSet(agent, catalogue.tools, offers, catalogue.refusedTools),
      agent,
      catalogue.pins.approval,
    );
    this.#last.set(agent, { version, offers, set });
    return set;
  }
}

/** An offer that declares nothing and has nothing makes no difference. */
function saysAnything({ declared, tools, sources, isAwaited = false, failure, unfit = "" }: Offer): boolean {
  return declared.size + tools.length + sources.length > 0 || isAwaited || failure !== "" || unfit !== "";
}

function areSame(some: readonly Offer[], others: readonly Offer[]): boolean {
  return some.length === others.length && some.every((offer, index) => offer === others[index]);
}
