import { type Proofs, shown } from "./proof.ts";

export const work: Proofs = {
  "WORK-1": [
    shown(
      "a file with PEP 723 metadata runs by uv, its dependency installed",
      "the example qr has its dependency installed",
    ),
    shown(
      "malformed metadata and a plain Python file are refused with file and reason, and hide no other",
      "a malformed and a plain file are refused with file and reason",
      "test_refusals_say_why",
    ),
    shown(
      "CRLF files work",
      "a malformed and a plain file are refused with file and reason",
      "test_line_ends_of_windows",
    ),
    shown(
      "a TypeScript or JavaScript module is a hosted tool",
      "its tools are offered as they describe themselves",
      "a loop without end stops neither the service",
    ),
    shown(
      "a worker's environment is isolated from the machine's Python packages",
      "a worker has an environment of its own, in which no package of the machine is found",
    ),
  ],
  "WORK-2": [
    shown(
      "top-level functions without a leading underscore, narrowed by __all__",
      "test_only_top_level_functions_without_underscore",
      "test_all_narrows",
      "test_a_computed_all_is_refused",
    ),
    shown(
      "the schema comes from signature, hints and docstring",
      "a tool carries the schema of its signature",
      "test_each_hint_has_its_schema",
      "test_what_has_no_default_is_required",
      "test_google",
      "test_numpy",
      "test_sphinx",
    ),
    shown(
      "reading a file does not run it",
      "a tool carries the schema of its signature, and reading a file does not run it",
      "test_nothing_is_run",
    ),
  ],
  "WORK-3": [
    shown(
      "of several instances the one with the worker gets the call, another one when it is full",
      "two instances are one pool: calls go where the worker is warm",
    ),
    shown("the first call starts the worker, later ones reuse it", "the first call starts the worker"),
    shown(
      "an idle worker ends; each call resets the time; a call in flight is never idle",
      "an idle worker ends; each call resets the time",
      "a worker ends in its time also when the last call",
    ),
    shown("the idle time is ten minutes unless told", "a worker is ended after ten idle minutes"),
    shown(
      "installing has its own timeout and is not counted as call time",
      "installing is not counted as call time",
      "installing has its own timeout",
    ),
    shown(
      "the first call shows what is installed, and a failed install is remembered for a while",
      "the first call shows what uv does",
      "a failed install is remembered for a while with uv's words",
    ),
  ],
  "WORK-4": [
    shown(
      "one line a request and a result with its id; values go byte for byte",
      "a request is one line",
      "the text of a result is taken as it stands",
      "test_it_tells_what_it_offers_and_answers_by_id",
      "values of every kind come back",
      "a result passes byte for byte",
    ),
    shown(
      "a tool gets the config and secrets of its entry and no others, never by its environment or a log",
      "a tool gets the secrets that its entry names and no others",
      "it is given the config and the secrets of its source's entry",
      "values of secrets are struck out",
      "secrets never stand in a log",
      "test_config_and_secrets_belong_to_the_call",
    ),
  ],
  "WORK-5": [
    shown(
      "600 calls in flight, whatever they print: none gets another's result",
      "no call ever gets another's result, whatever the tool prints",
      "test_many_calls_in_flight_never_mix",
    ),
    shown(
      "print goes to the log, not into the protocol",
      "test_whatever_a_tool_prints_stays_out_of_the_protocol",
      "every line is labelled with source, function, call and trace",
    ),
    shown(
      "a coroutine that blocks the loop is told, and the others run on",
      "test_a_coroutine_that_blocks_is_told_and_the_others_run_on",
    ),
    shown(
      "an edited file has an environment of its own, and the calls of the version before keep theirs",
      "an edited file gets an environment of its own",
    ),
    shown(
      "frames for calls that were never made, and second answers, are faults of the worker and told as such",
      "is a fault of the worker, and its calls are told",
      "a second answer to one call is a fault",
    ),
    shown("stderr is always drained", "megabytes on stderr block nothing", "stderr is always drained"),
  ],
  "WORK-6": [
    shown(
      "the SDK writes JSON lines",
      "test_logs_are_lines_of_json_with_level_and_fields",
      "a line of the SDK is read, any other is a message",
    ),
    shown(
      "they are labelled with tool, call and trace, and streamed",
      "every line is labelled with source, function, call and trace",
      "progress and logs come before",
      "a watcher gets the lines of its source in order",
    ),
  ],
  "WORK-7": [
    shown("an exception is its words to the caller and a traceback in the log", "an exception is the call's error"),
    shown("a result that is not JSON fails its call only", "a result that is not JSON and a wrong argument"),
    shown(
      "a timeout ends the call, and the worker only where it must; the other calls are finished first",
      "a call whose time is over ends, coroutine or loop, and its worker goes on",
      "a function that cannot be canceled has its worker replaced",
    ),
  ],
  "WORK-8": [
    shown(
      "a crash fails its calls at once with the tail of stderr; the next call starts another worker",
      "a crash fails the calls at once, with the tail of stderr",
    ),
    shown(
      "what a crash tells a call holds no other call's data",
      "each call is told its own last words, and nothing that another call wrote",
      "half a frame is told to nobody but operators",
      "who comes while the worker is backed off is told why without the words of calls",
    ),
    shown("one that keeps crashing is backed off with the reason kept", "a worker that keeps crashing is backed off"),
  ],
  "WORK-9": [
    shown(
      "nothing is left after SIGTERM, nor after SIGKILL of the service, children included",
      "SIGTERM finishes the calls in flight and leaves nothing",
      "SIGKILL of the service leaves neither",
      "a worker that is stopped takes its children with it",
      "leaves nothing behind, not even a grandchild",
      "leaves nothing behind when the watchdog had been",
    ),
  ],
  "WORK-10": [
    shown(
      "calls per worker and per pool, and workers, are bounded: a call waits in line or is refused, as configured",
      "beyond its bound a call waits in line",
      "or is refused as resource_exhausted, as configured",
      "places are given out in the order of asking",
    ),
    shown(
      "what an older version of a file still does keeps no room from other files",
      "a full pool whose old version of a file still works makes room for a third file",
    ),
    shown(
      "a worker's calls and life can be limited: the next call meets a warm one, and spares keep to the pool's bounds",
      "a worker that has had its calls gets no further one",
      "a worker that has had its time gets no further call",
      "no call is lost, repeated or crossed where workers follow each other",
      "a spare makes room for another file's worker",
    ),
    shown("a worker's memory can be limited", "a worker's memory is limited: the call over it fails alone"),
    shown("a worker's CPU can be limited", "a worker's processor time is limited: one that uses it up ends"),
  ],
  "WORK-11": [
    shown(
      "worker_main, get_config, get_secret, log and progress",
      "test_a_tool_that_calls_worker_main_works_either_way",
      "test_config_and_secrets_belong_to_the_call",
      "test_logs_are_lines_of_json_with_level_and_fields",
      "test_a_step_of_the_log_ends_with_its_time",
      "a tool gets the secrets that its entry names",
      "progress and logs come before the one result",
    ),
    shown(
      "a tool calls other tools back through the pool, inside its run's bounds",
      "test_a_function_in_a_thread_waits_for_each_result",
      "test_a_coroutine_asks_several_at_a_time_and_gets_each_its_own",
      "test_a_cancel_ends_the_waiting_and_a_late_reply_is_nobodys",
      "calls is bound by what its run allows",
      "calls counts in its run's max_tool_calls",
      "a question of a worker keeps the text of its arguments",
    ),
  ],
  "WORK-12": [
    shown(
      "a hosted module uses registry, config and model of its agent, within its run's limits",
      "an agent's run reads a file, runs a command and calls a hosted tool, which uses the agent's tools and a model",
      "calls is bound by what its run allows",
    ),
    shown("a module that changes is loaded anew", "a change is loaded, of what it imports too"),
    shown(
      "one that throws, exits, fills memory or loops is contained",
      "is the error of its call, and nothing else happens",
      "ends its process: its calls are told",
      "a loop without",
      "is refused with its reason and hides no other",
    ),
  ],
};
