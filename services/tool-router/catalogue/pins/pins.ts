import { hash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { type StoredPin, StoredPinSchema } from "#gen/toolbus/internal/tool/v1/stored_pin_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { ToolApproval } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import type { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { areSameDefinition, definitionOf, digestOf } from "../../tools/tool-set/pins/definition.ts";
import type { ToolEntry, ToolSet } from "../../tools/tool-set/tool-set.ts";

export interface PinsOptions {
  pins: { readonly bucket: Bucket<StoredPin>; readonly view: BucketView<StoredPin> };
  audit: Audit;
  clock: Pick<Clock, "now">;
  onFault: (fault: string) => void;
}

/** One tool's changes are recorded and audited at most this often: a server may change as fast as it likes. */
const BETWEEN_CHANGES_MS = 10_000;
/** A record makes each set of tools anew: of two definitions that stand side by side, neither is recorded again because of the other. */
const BETWEEN_SAME_MS = 600_000;
const MOST_SEEN = 10_000;

/** The definitions to which agents hold tools, as all routers have read them, and what was seen to change. */
export class Pins {
  readonly #options: PinsOptions;
  readonly #settling = new WeakMap<ToolSet, Promise<void>>();
  readonly #settled = new WeakSet<ToolSet>();
  /** Of tools that are not pinned, or pinned to a digest: the definition that was seen here last. */
  readonly #seen = new BoundedMap<string, Tool>(MOST_SEEN);
  readonly #toldAt = new BoundedMap<string, number>(MOST_SEEN);
  /** By tool, and what it became. */
  readonly #recordedAt = new BoundedMap<string, number>(MOST_SEEN);

  constructor(options: PinsOptions) {
    this.#options = options;
  }

  /** Grows with each change. */
  get version(): number {
    return this.#options.pins.view.version;
  }

  readonly approval = (agent: string, reference: string): StoredPin | undefined =>
    this.#options.pins.view.get(keyOf(agent, reference))?.value;

  /** Records what is seen of these tools for the first time, and what has changed. */
  settle(tools: ToolSet): Promise<void> {
    const standing = this.#settling.get(tools);
    if (standing !== undefined) return standing;
    const settling = callPatience
      .exit(() => this.#settle(tools))
      .catch((error: unknown) => {
        this.#options.onFault(`tools of agent ${tools.agent} cannot be pinned: ${messageFromUnknown(error)}`);
        return false;
      })
      .then((isRecorded) => void (isRecorded ? this.#settled.add(tools) : this.#settling.delete(tools)));
    this.#settling.set(tools, settling);
    return settling;
  }

  /** Whether all of it is recorded, so that nobody has to wait. */
  isSettled(tools: ToolSet): boolean {
    return this.#settled.has(tools);
  }

  /** Pinned tools of an agent that were offered otherwise, by reference. */
  changes(agent: string): StoredPin[] {
    return this.#ofAgent(agent)
      .filter(({ offeredDigest }) => offeredDigest !== "")
      .sort((one, other) => (one.reference < other.reference ? -1 : 1));
  }

  /** What is not what was looked at is refused, before anything is approved. */
  async approve(agent: string, approvals: readonly ToolApproval[], by: string): Promise<StoredPin[]> {
    const { pins } = this.#options;
    const changes = approvals.map((approval) =>
      requireOffered(agent, this.approval(agent, approval.reference), approval),
    );
    for (const change of changes) {
      const { reference, offered, offeredDigest: digest } = change;
      const update = await pins.bucket.update(keyOf(agent, reference), (standing) => {
        requireOffered(agent, standing, { reference, digest });
        return create(StoredPinSchema, { agent, reference, approved: offered!, approvedDigest: digest });
      });
      await pins.view.reached(update.revision);
      const message = `tool ${reference} of agent ${agent} was approved by ${by} as ${digest}, in place of ${change.approvedDigest}`;
      this.#options.audit({ kind: AuditKind.CONFIGURED, agent, tool: reference, message }, by);
    }
    return changes;
  }

  /** An agent that is created anew begins without them. */
  async forget(agent: string): Promise<void> {
    await Promise.all(
      this.#ofAgent(agent).map(({ reference }) => this.#options.pins.bucket.remove(keyOf(agent, reference))),
    );
  }

  #ofAgent(agent: string): StoredPin[] {
    return this.#options.pins.view.entries.map(([, { value }]) => value).filter((pin) => pin.agent === agent);
  }

  /** Gives whether all of it is recorded; else some of it is when the tools are used again. */
  async #settle(tools: ToolSet): Promise<boolean> {
    const writes: (boolean | Promise<boolean>)[] = [];
    for (const entry of tools.byReference.values()) {
      const { pin, executor } = entry;
      if (entry.isAwaited || entry.unavailable !== "") continue; // what it is is not known
      if (pin === undefined || pin.wanted !== "") {
        if (executor.kind === "provider" && entry.standing === "in use") writes.push(this.#look(tools.agent, entry));
      } else if (pin.state === "unrecorded") writes.push(this.#record(tools.agent, entry.reference, pin.offered));
      else if (pin.state === "changed") writes.push(this.#recordChange(tools.agent, entry.reference, pin.offered));
    }
    return (await Promise.all(writes)).every((isRecorded) => isRecorded);
  }

  async #record(agent: string, reference: string, offered: Tool): Promise<boolean> {
    const { pins, audit } = this.#options;
    const approvedDigest = digestOf(offered);
    const first = create(StoredPinSchema, { agent, reference, approved: definitionOf(offered), approvedDigest });
    const update = await pins.bucket.update(keyOf(agent, reference), (standing) => (standing ? undefined : first));
    await pins.view.reached(update.revision);
    const message = `tool ${reference} of agent ${agent} is pinned as it was first seen, ${approvedDigest}`;
    if (update.hasChanged) audit({ kind: AuditKind.CONFIGURED, agent, tool: reference, message });
    return true;
  }

  async #recordChange(agent: string, reference: string, offered: Tool): Promise<boolean> {
    const { pins } = this.#options;
    const offeredDigest = digestOf(offered);
    const key = keyOf(agent, reference);
    const listed = pins.view.get(key)?.value.offeredDigest;
    const change = `${key} ${offeredDigest}`;
    if (listed === offeredDigest) return true;
    if (listed && this.#isWithin(BETWEEN_SAME_MS, this.#recordedAt.get(change))) return true;
    if (!this.#mayTell(key)) return false;
    const update = await pins.bucket.update(key, (standing) => {
      const isKnown = [standing?.approvedDigest, standing?.offeredDigest].includes(offeredDigest);
      return standing === undefined || isKnown
        ? undefined
        : { ...standing, offered: definitionOf(offered), offeredDigest };
    });
    this.#recordedAt.set(change, this.#options.clock.now());
    await pins.view.reached(update.revision);
    if (update.hasChanged) this.#tell(agent, reference, ["pinned", update.value?.approvedDigest ?? "", offeredDigest]);
    return true;
  }

  /** Nobody holds the tool to what it was; that it is another one is told all the same. */
  #look(agent: string, { reference, tool, pin }: ToolEntry): boolean {
    const key = keyOf(agent, reference);
    const offered = pin?.offered ?? tool;
    const before = this.#seen.get(key);
    const wanted = pin?.state === "changed" ? pin.wanted : undefined;
    const isSame = before === undefined ? wanted === undefined : areSameDefinition(before, offered);
    if (!isSame && !this.#mayTell(key)) return false;
    this.#seen.set(key, offered);
    const rule = wanted ? "pinned" : "not pinned";
    if (!isSame) this.#tell(agent, reference, [rule, wanted ?? digestOf(before!), digestOf(offered)]);
    return true;
  }

  #mayTell(key: string): boolean {
    if (this.#isWithin(BETWEEN_CHANGES_MS, this.#toldAt.get(key))) return false;
    this.#toldAt.set(key, this.#options.clock.now());
    return true;
  }

  #isWithin(ms: number, at = Number.NEGATIVE_INFINITY): boolean {
    return this.#options.clock.now() - at < ms;
  }

  #tell(agent: string, tool: string, [rule, before, after]: [rule: string, before: string, after: string]): void {
    const message = `the definition of tool ${tool} has changed from ${before} to ${after}`;
    this.#options.audit({ kind: AuditKind.TOOL_CHANGED, agent, tool, rule, message });
  }
}

function requireOffered(
  agent: string,
  pin: StoredPin | undefined,
  { reference, digest }: Pick<ToolApproval, "reference" | "digest">,
): StoredPin {
  if (pin?.offeredDigest === digest) return pin;
  const found = pin?.offeredDigest ? `as ${pin.offeredDigest}` : "as it was approved, or is not pinned";
  const message = `tool ${JSON.stringify(reference)} of agent ${JSON.stringify(agent)} is offered ${found}, not as ${digest}: list the changes again`;
  return refuse("aborted", message, { reason: "REVISION_MISMATCH", metadata: { name: reference } });
}

/** A reference may hold what no key does. */
function keyOf(agent: string, reference: string): string {
  return `${agent}.${hash("sha256", reference, "base64url")}`;
}
