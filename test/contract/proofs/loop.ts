import { type Proofs, shown } from "./proof.ts";

/** The course of a run: its ends, choices, calls, results and hosted tools. */
export const loop: Proofs = {
  "LOOP-1": [
    shown(
      "from the input over calls to a final answer, in the service and in the loop",
      "goes from the input over a call to the final answer",
      "turns from the model over its calls to the final answer",
    ),
    shown(
      "max_turns is incomplete, reason max_turns, 10 unless told",
      "max_turns is incomplete, with the results of the last turn; 10 unless told",
    ),
    shown("max_tool_calls ends it and is never exceeded", "max_tool_calls is never exceeded"),
    shown("a deadline cuts the model and calls in flight", "a deadline cuts the model's request and a call"),
    shown("cancellation has its own status", "reaches the model's request and the call in flight"),
    shown("an unrecoverable error fails it and says why", "an error of the model that no retry mends fails the run"),
    shown(
      "one run of a session at a time; further input waits, also while it is parked",
      "waits for the one before it in its session",
      "parks until its outputs are there, and further input",
      "waits until the run that goes on has ended",
      "a parked session starts nothing",
    ),
  ],
  "LOOP-2": [
    shown(
      "auto, required, none and one forced tool are handed to the model",
      "%s is handed to the model, in the first turn",
      "a forced tool is forced once, under any of its names",
    ),
    shown(
      "required and forced hold for the first turn only",
      "required holds for the first turn only",
      "a forced tool is forced once",
    ),
    shown(
      "a forced tool that is unknown or not allowed is refused before the model is called",
      "options that name what no tool is called are refused",
    ),
    shown("under none a call gets an error and is not executed", "under none a call gets an error"),
    shown(
      "a model that does not obey is asked once more, then tool_choice_unmet",
      "a model that does not obey is asked once more",
    ),
  ],
  "LOOP-3": [
    shown(
      "a call outside of it is answered in these words and not executed, while all tools stay visible",
      "allowed_tools narrows what is called, by alias too, and hides nothing",
      "a call outside of the run's allowed_tools is refused in these words",
    ),
    shown("nor is it handed to the client", "a tool of the client that is not allowed is not handed to it"),
    shown("a name that no tool has gets an error", "allowed_tools narrows what is called, by alias too"),
    shown(
      "an unknown entry is refused before the model is called",
      "options that name what no tool is called are refused",
    ),
    shown(
      "entries may be alias or model name",
      "allowed_tools narrows what is called, by alias too",
      "a call outside of the run's allowed_tools is refused in these words",
    ),
    shown("entries may be references (@server/tool)", "an entry may be a reference"),
  ],
  "LOOP-4": [
    shown(
      "calls of a turn run in parallel within a bound, and results go back in the order of the calls",
      "calls run in parallel within their limit, and results go back in the order of the calls",
    ),
    shown("the bound is 8 unless told", "eight calls run at once unless the limits say otherwise"),
    shown("in order with parallel_tool_calls: false", "without parallel_tool_calls they run one after the other"),
    shown("one that fails fails alone", "a result has its call's id, its output, and says whether"),
  ],
  "LOOP-5": [
    shown(
      "a mixed turn runs its own calls and parks for the rest",
      "a mixed turn runs its own calls, parks for the rest",
      "parks until its outputs are there",
    ),
    shown(
      "outputs come in parts, from any client, days later",
      "goes on with outputs that come days later",
      "whose outputs come in parts parks once",
      "of many clients that answer at once",
    ),
    shown(
      "an unknown, foreign or answered call is refused by name",
      "a mixed turn runs its own calls, parks for the rest",
    ),
    shown(
      "text that came with the calls is kept",
      "an error of the client is data for the model, and its text beside the calls is kept",
    ),
    shown(
      "arguments and outputs are held to the schemas of the function tools",
      "are not asked with arguments that do not fit",
      "answer what they promise",
    ),
    shown(
      "a run brings its own MCP servers, for itself alone and as far as operators let it",
      "is that run's alone, also beside one of the same name, and is gone at its end",
      "is there again after the orchestrator was killed",
      "is refused before the model is called where operators or the agent do not have it",
      "is not reached at an address inside that operators do not allow",
    ),
    shown(
      "an answer has an id of its submission, so that a repetition is told that it won",
      "of ten clients with submissions of their own one wins, and is told so",
    ),
  ],
  "LOOP-6": [
    shown(
      "single_turn returns the calls as completed and executes nothing",
      "a single turn returns the calls and executes nothing",
      "is completed in single-turn mode, and the follow-up's function_call_output finds its call",
    ),
    shown("input answers a call of an earlier run once", "input answers a call of an earlier run once"),
  ],
  "LOOP-7": [
    shown(
      "errors are data: a tool's error, arguments that are no JSON, a repeated id",
      "what fails is data: a tool's error, arguments that are not JSON",
    ),
    shown(
      "is_error survives from provider over router and client to the model",
      "errors have one form",
      "that are errors have the form of all errors",
      "a result has its call's id, its output, and says whether",
      "an error stays an error",
    ),
    shown(
      "a tool that hangs, or whose answer is invalid, is an error of its call",
      "a provider that hangs is given up",
      "that are no JSON, or not what was promised",
    ),
  ],
  "LOOP-8": [
    shown(
      "JSON where it is promised, outputSchema where there is one",
      "that are no JSON, or not what was promised, are errors of their call",
      "answer what they promise",
      "that are not JSON are refused by the call's id",
    ),
    shown(
      "over the limit it is stored whole and shown shortened with a reference",
      "that are too large are stored whole and shown shortened",
    ),
    shown(
      "model, client and person can read the rest by the reference",
      "a model reads the end of a result that it was shown shortened",
      "are read whole by their owner and by operators",
      "are nobody else's to read",
      "gives the whole in parts of whole characters",
      "a stream that breaks is taken up at the byte where it broke",
    ),
    shown(
      "a stored result is kept as long as the log of a run may refer to it, and one that is gone is told as such",
      "a stored result stays as long as its session has runs",
      "that are no longer kept are told as such",
    ),
  ],
  "LOOP-9": [
    shown(
      "tools are registered, found, listed, initialized and shut down",
      "a module has no process before its first call, unless it has something to initialize",
      "the registry knows it by its bare name",
      "one that is stopped finishes its calls, or fails them when forced, and shuts down",
    ),
    shown("a duplicate name is refused", "is refused with its reason and hides no other"),
  ],
};

/** That limits hold whoever asks: of the agent, of the run, in the router too. */
export const loopLimits: Proofs = {
  "LOOP-12": [
    shown(
      "limits of the run",
      "max_turns is incomplete",
      "max_tool_calls is never exceeded",
      "a deadline cuts the model's request",
      "no limit is exceeded by more than the calls in flight",
    ),
    shown(
      "of agent and run the lower limit holds, at the router too",
      "of agent and run the lower limit holds",
      "is at most what the agent's configuration allows",
    ),
    shown(
      "retries and timeouts of a model are options",
      "after model_retries the run fails with the provider's words",
      "a stream that stalls is cut",
      "limits of weeks are kept",
    ),
    shown(
      "budgets of tokens and money, which a crash does not reset",
      "max_cost ends the run as soon as the log shows",
      "max_tokens counts what was read and written",
      "a budget survives a crash at each event",
      "is rounded up once a request",
      "prices and limits of an agent are in one currency",
      "in another currency than the prices is refused",
    ),
    shown(
      "stop conditions are options of agent and run",
      "is completed with its answer",
      "is told so by",
      "goes on where the tool fails",
      "ends so wherever it is taken up",
      "a tool to stop at that no tool is called",
      "are its own, inside what is left",
    ),
  ],
};
