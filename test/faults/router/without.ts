import type { Edit } from "../processes/tree.ts";

/** A part of the router that is taken away in a copy of the tree. */
export interface Without {
  readonly meaning: string;
  readonly edits: readonly Edit[];
}

const file = (name: string) => `services/tool-router/${name}`;

const handToAll: Edit = {
  file: file("calls/watchers/dispatcher.ts"),
  from: "watcher.push({ call: record, deliveryId: delivery.id, withdrawn: false });",
  to: `for (const one of this.#watchers) {
      const deliveryId = one === watcher ? delivery.id : createDeliveryId(one.token, callId);
      if (one.tools.has(tool)) one.push({ call: record, deliveryId, withdrawn: false });
    }`,
};

export const withouts: Readonly<Record<string, Without>> = {
  "compare-and-set": {
    meaning: "a submission is written whatever stands",
    edits: [
      {
        file: file("calls/requests/submissions.ts"),
        from: "if (!isOpen(record) || hasExpired(record, clock.now()) || isStranger(record, principal)) return undefined;",
        to: "if (hasExpired(record, clock.now()) || isStranger(record, principal)) return undefined;",
      },
    ],
  },
  "one-watcher": {
    meaning: "a call is handed to all watchers of its tool",
    edits: [handToAll],
  },
  taking: {
    meaning: "a watcher may take what another one has taken",
    edits: [
      handToAll,
      {
        file: file("calls/requests/acknowledgements.ts"),
        from: "isOpen(record) && !record.taken",
        to: "isOpen(record)",
      },
    ],
  },
  "read-after-subscribing": {
    meaning: "who waits listens two seconds after the call is offered, does not read then, and no news is told twice",
    edits: [
      {
        file: file("calls/execute/outside.ts"),
        from: "    try {\n      return await waiters.until(record.callId, () => read(record.callId), ends);",
        to: "    try {\n      await clock.delay(2_000, ends);\n      let looks = 0;\n      return await waiters.until(record.callId, async () => (looks++ === 0 ? undefined : read(record.callId)), ends);",
      },
      {
        file: file("subscriptions/calls/due-work.ts"),
        from: "if (changed.length > 0) options.notify(changed);",
        to: "if (changed.length > mostAtOnce) options.notify(changed);",
      },
    ],
  },
};
