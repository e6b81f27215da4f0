import { type Proofs, shown } from "./proof.ts";

export const orch: Proofs = {
  "ORCH-1": [
    shown(
      "calls in flight get their time, then are canceled, which is an audit event",
      "a call in flight ends in its time",
      "calls that take too long are canceled at their provider",
      "calls get their time to the millisecond",
    ),
    shown("that time is 5 s unless told", "calls in flight get 5 s at a switch"),
    shown(
      "the old context is torn down: MCP connections, tools by any name, nothing is left under load",
      "no tool and no MCP connection of the old agent is reached",
      "no call is lost or misled, and nothing is left",
    ),
    shown(
      "an agent that cannot be loaded is refused before anything is torn down",
      "an agent that does not exist or cannot be loaded is refused",
    ),
    shown(
      "parked runs of the old agent are canceled",
      "a parked run of the old agent is canceled",
      "parked runs of the old agent are canceled, running ones are not",
      "a run that parks while its session is switched",
    ),
    shown("the caller's tools stay with the session", "the tools of the session's caller stay"),
    shown(
      "the new agent is shown what users and agents said, and nothing of the former one's calls and results",
      "is what users and agents said, without calls and results, in every run until the next switch",
      "is neither thoughts nor instructions, news of the inbox, answers to calls or summaries of them",
      "is the same to a fork as to the run at whose point it stands",
    ),
    shown(
      "with carry: nothing it is shown nothing",
      "is empty where the switch carries nothing, and cannot be asked for then",
      "a run continues only one of its own session that its agent is shown",
    ),
    shown(
      "an agent that comes back is shown the same, and its own calls no more",
      "shows an agent that comes back what it said itself as its own, and its calls no more",
    ),
    shown(
      "memory, spaces and pending results stay with the old agent",
      "memory and the active space of the old agent stay with it",
      "a result that comes after a switch stays with the agent that called, and wakes it when it is back",
      "the result of a call $how goes to that agent's inbox alone",
    ),
    shown("a switch whose router is killed is finished by another", "it is finished by another router"),
  ],
  "ORCH-2": [
    shown(
      "a refusal names agent, tool and rule, to the model and on the trail",
      "a refused call names agent, tool and rule, is an audit event, and reaches no provider",
    ),
    shown(
      '["*"] and an empty list allow what is in use; patterns work',
      "without a list of allowed tools all in use are",
      "an empty list of allowed tools allows none",
      "ORCH-2 %s and %s: %s",
      "an empty list of allowed tools in a file allows what is in use",
    ),
    shown(
      "nothing outside of use is ever callable, by whatever history",
      "lets a tool outside of use be called, by whatever name",
      "additions lets a tool outside of use be called",
    ),
    shown(
      "built-ins need no listing, and allowed_tools does not narrow them",
      "allowed_tools does not narrow the built-ins",
    ),
    shown(
      "the session's caller tools need no listing, and allowed_tools narrows them",
      "a caller's tools need no listing, and allowed_tools narrows them",
    ),
  ],
  "ORCH-3": [
    shown(
      "an alias and the real name lead to one tool; either in allowed permits both",
      "KIND-1 a call goes to the provider of its source",
      "an alias or the real name in allowed permits both",
    ),
    shown(
      "an alias that points nowhere, in a circle, or is named like a built-in is refused when the agent is loaded",
      "an alias that points nowhere, in a circle, or is named like another tool is refused",
      "an agent with faults is refused with all of them",
    ),
    shown(
      "fs_read and its kin are targets only where use names them",
      "what touches this machine is in use by its very name alone",
    ),
  ],
  "ORCH-4": [
    shown(
      "the derived name fits providers and never collides",
      "every name fits what providers of models accept",
      "two references never share a name",
      "makes a name mean two tools: each model name",
    ),
    shown(
      "it is stable when servers are added",
      "changes a model name that stands",
      "in no history of additions does a name that stands change",
      "a provider that is added later takes over no name",
    ),
  ],
  "ORCH-5": [
    shown(
      "an agent for which no tool resolves, or that names one that does not exist, says so when it is loaded",
      "say which of their tools do not exist",
      "say that none of their tools resolves",
      "an agent whose tools do not resolve is loaded and says so",
    ),
    shown(
      "explain answers why",
      "explain tells the way and the rule that decides",
      "a tool that is in use and not allowed",
      "a tool whose source cannot be used",
      "a visible tool needs a space",
    ),
  ],
  "ORCH-6": [
    shown(
      "servers over stdio and streamable HTTP, both real, in one agent's offer",
      "a server over stdio and one over HTTP are sources beside each other",
      "lists and calls server-everything and server-filesystem",
      "lists and calls, with progress, logs and the headers",
      "is discovered, listed and called",
    ),
    shown(
      "servers over SSE, WebSocket and TCP",
      "is listed and called, many at a time",
      "that is cut off fails what it held",
      "that is not there is unavailable",
    ),
    shown(
      "ready when initialised and listed; the startup timeout is each server's own",
      "is ready when it is initialised and listed",
      "one that hangs is unavailable after its own startup timeout",
      "one that initialises and never lists",
    ),
    shown("that timeout is 5 s unless told", "a server has 5 s to start"),
    shown(
      "one that fails or hangs is unavailable with its reason, and delays and hides no other",
      "a server that fails or hangs delays and hides no other",
      "one that crashes at its start is unavailable with its exit code",
      "an address where nobody listens is unavailable",
      "a server that answers all with HTTP %i is told with it",
    ),
    shown(
      "older servers over HTTP are reached, whatever they say to a question that they do not know",
      "a server that answers server/discover with %s",
      "only the SSE of 2024-11-05 is recognised",
    ),
    shown(
      "a connection belongs to one session and agent, unless it is shared",
      "a connection belongs to one session and agent, unless it is shared",
    ),
    shown(
      "what is shared outlives the release of a scope, as at a switch",
      "releasing a scope ends its servers on every instance, and nothing else",
    ),
  ],
  "ORCH-7": [
    shown(
      "all pages, annotations whole, one bad tool hides no other",
      "one bad tool never hides the rest, on any page",
      "of any form is taken or refused with a reason",
    ),
    shown("name, description and schemas are kept as listed", "keeps name, title, description and schemas"),
    shown(
      "list_changed refreshes, over stdio, HTTP and a subscription, in a storm too",
      "list_changed refreshes, in a storm too",
      "list_changed refreshes, also after the stream of events was closed",
      "tells its changes on a subscription",
      "a watch tells the tools at once and after each change",
      "a storm of requests puts it off no longer",
    ),
    shown(
      "servers are applied and removed while the bridge runs, and every agent's offer follows",
      "are applied, offered by themselves, listed and deleted",
      "are told to a watch when they come and go",
    ),
  ],
  "ORCH-8": [
    shown(
      "green, yellow and red by latency and misses",
      "with %i misses and %i ms is %i",
      "turns yellow at the first miss, red at the second",
    ),
    shown(
      "with a check, on a real server, also of a revision without ping",
      "with a check, the light shows that the server answers",
      "a server that misses two checks is red",
      "is checked without a ping, which it does not know",
    ),
    shown(
      "a dead server comes back by itself",
      "a server that goes is red, and green again by itself",
      "a server that misses two checks is red, and is connected to again",
    ),
    shown("sessions are told, whichever instance holds it", "their health is told, whichever instance"),
    shown("a slow answer is told with its latency and reason", "an answer that takes longer than a second is yellow"),
  ],
  "ORCH-9": [
    shown(
      "fs_read and fs_write below allowedPaths alone, symlinks and .. resolved, in races too",
      "is refused to a reader",
      "no way out lets a writer change or make anything outside",
      "a link that is swapped between inside and outside",
      "nor does it let a writer change or make anything",
    ),
    shown(
      "shell_exec runs what is listed, letter by letter, without a shell",
      "letter %s is refused",
      "an argument is one argument, whatever is in it",
      "the policy is the catalogue's: nothing that the model says widens it",
    ),
    shown("its timeout ends the whole process group", "its time over, the whole group is ended"),
  ],
  "ORCH-10": [
    shown(
      "teardown ends server processes with their children, also ones that ignore SIGTERM, and at the bridge's death",
      "releasing a scope ends its servers on every instance",
      "of the bridge leaves no server and none of its",
      "closing ends one that ignores SIGTERM, with its children",
    ),
  ],
  "ORCH-11": [
    shown(
      "permitted and blocked can be watched live, from any place in the trail",
      "decisions can be watched live, filtered, from any place",
      "what is recorded can be followed live, and read backwards",
      "what a router decided right before SIGTERM stands on the trail",
    ),
    shown(
      "built, switched, switch timed out and torn down",
      "a session comes through its states in order",
      "calls that take too long are canceled at their provider",
    ),
    shown("unavailable, and available again, with the reason", "a connection is built, away with its reason, back"),
  ],
  "ORCH-12": [
    shown(
      "a page of agents, tools, servers, runs, spaces and the audit stream",
      "is watched as it happens, answered in the page",
      "says who executed each call, in how many attempts",
      "are asked for once and follow what happens from there on",
      "tools say who may call them and why not",
      "a session is switched to another agent",
      "each decision of the audit trail leads to its call",
      "axe finds nothing",
    ),
    shown(
      "runs as they happen, at a cost that does not grow with those that are stored",
      "10,000 runs that stand cost a watcher nothing",
      "a principal is told of its own runs only",
      "who is slower than changes are dropped is told the gap",
      "cannot be read at once is read again",
      "that stays unreadable is passed over",
      "begins again where it stood",
      "tells each run as it is accepted",
      "goes on from any place with what came since",
    ),
    shown(
      "people answer tools in it, by a form from the schema",
      "is found in the inbox and declined from a link on a phone",
      "asks for each property in its kind",
    ),
    shown(
      "a component for each tool name, a generic one otherwise",
      "is asked as the component draws it, and answered by it",
      "tells a component what the suite said against its answer",
      "is named with its fault, and the plain form answers",
      "a tool without one has the plain form",
      "an edit shows at the next look",
      "it is told whether there is one",
    ),
  ],
  "ORCH-13": [
    shown(
      "a transport is a registered module, chosen by name or scheme",
      "are chosen by name, else by scheme",
      "that are not registered are refused",
    ),
    shown(
      "a third party's module is used like any other",
      "of third parties are used like any other",
      "where third parties bring transports, names and schemes are theirs",
    ),
    shown(
      "one that TOOLBUS_MCP_TRANSPORTS names reaches a server behind a socket",
      "a transport of a third party's module, named by",
    ),
  ],
};
