import { type Proofs, shown, testsOf } from "./proof.ts";

const calls = testsOf("services/worker-pool/testing/calls.test.ts");
const lives = testsOf("services/worker-pool/testing/lives.test.ts");
const installs = testsOf("services/worker-pool/testing/installs.test.ts");
const canceling = testsOf("services/worker-pool/testing/canceling.test.ts");
const processes = testsOf("services/worker-pool/testing/process.test.ts");
const examples = testsOf("services/worker-pool/testing/examples.test.ts");
const edits = testsOf("services/worker-pool/testing/edits.test.ts");
const faults = testsOf("services/worker-pool/testing/faults.test.ts");
const files = testsOf("services/worker-pool/files/files.test.ts");
const frames = testsOf("services/worker-pool/worker/frames.test.ts");
const logs = testsOf("services/worker-pool/logs/logs.test.ts");
const callTime = testsOf("services/worker-pool/pool/call-time.test.ts");
const permits = testsOf("services/worker-pool/pool/permits.test.ts");
const hosted = testsOf("services/worker-pool/hosted/hosted.test.ts");
const hostedFiles = testsOf("services/worker-pool/hosted/files.test.ts");
const hostedSuite = testsOf("test/system/tools/hosted-and-builtins.test.ts");
const toolFile = testsOf("services/worker-pool/inspector/tests/test_tool_file.py");
const schema = testsOf("services/worker-pool/inspector/tests/test_schema.py");
const docstring = testsOf("services/worker-pool/inspector/tests/test_docstring.py");
const sdkWorker = testsOf("sdk/python/tests/test_worker.py");
const sdkTogether = testsOf("sdk/python/tests/test_calls_together.py");
const childProcess = testsOf("runtime/lifecycle/child-process/child-process.test.ts");
const logger = testsOf("runtime/lifecycle/logger.test.ts");

export const work: Proofs = {
  "WORK-1": [
    shown(
      "a file with PEP 723 metadata runs by uv, its dependency installed",
      examples("the example qr has its dependency installed"),
    ),
    shown(
      "malformed metadata and a plain Python file are refused with file and reason, and hide no other",
      files("a malformed and a plain file are refused with file and reason"),
      toolFile("test_refusals_say_why"),
    ),
    shown(
      "CRLF files work",
      files("a malformed and a plain file are refused with file and reason"),
      toolFile("test_line_ends_of_windows"),
    ),
    shown(
      "a TypeScript or JavaScript module is a hosted tool",
      hosted("its tools are offered as they describe themselves", "a loop without end stops neither the service"),
    ),
    shown(
      "a worker's environment is isolated from the machine's Python packages",
      files("a worker has an environment of its own, in which no package of the machine is found"),
    ),
  ],
  "WORK-2": [
    shown(
      "top-level functions without a leading underscore, narrowed by __all__",
      schema("test_only_top_level_functions_without_underscore", "test_all_narrows", "test_a_computed_all_is_refused"),
    ),
    shown(
      "the schema comes from signature, hints and docstring",
      files("a tool carries the schema of its signature"),
      schema("test_each_hint_has_its_schema", "test_what_has_no_default_is_required"),
      docstring("test_google", "test_numpy", "test_sphinx"),
    ),
    shown(
      "reading a file does not run it",
      files("a tool carries the schema of its signature, and reading a file does not run it"),
      toolFile("test_nothing_is_run"),
    ),
  ],
  "WORK-3": [
    shown(
      "of several instances the one with the worker gets the call, another one when it is full",
      processes("two instances are one pool: calls go where the worker is warm"),
    ),
    shown("the first call starts the worker, later ones reuse it", calls("the first call starts the worker")),
    shown(
      "an idle worker ends; each call resets the time; a call in flight is never idle",
      lives("an idle worker ends; each call resets the time", "a worker ends in its time also when the last call"),
    ),
    shown(
      "the idle time is ten minutes unless told",
      testsOf("services/worker-pool/config.test.ts")("a worker is ended after ten idle minutes"),
    ),
    shown(
      "installing has its own timeout and is not counted as call time",
      installs("installing is not counted as call time", "installing has its own timeout"),
      callTime("installing and starting are not counted"),
    ),
    shown(
      "the first call shows what is installed, and a failed install is remembered for a while",
      installs("the first call shows what uv does", "a failed install is remembered for a while with uv's words"),
    ),
  ],
  "WORK-4": [
    shown(
      "one line a request and a result with its id; values go byte for byte",
      frames("a request is one line", "the text of a result is taken as it stands"),
      sdkWorker("test_it_tells_what_it_offers_and_answers_by_id"),
      calls("values of every kind come back", "a result passes byte for byte"),
    ),
    shown(
      "a tool gets the config and secrets of its entry and no others, never by its environment or a log",
      calls("a tool gets the secrets that its entry names and no others"),
      hosted("it is given the config and the secrets of its source's entry"),
      logs("values of secrets are struck out"),
      logger("secrets never stand in a log"),
      sdkWorker("test_config_and_secrets_belong_to_the_call"),
    ),
  ],
  "WORK-5": [
    shown(
      "600 calls in flight, whatever they print: none gets another's result",
      calls("no call ever gets another's result, whatever the tool prints"),
      sdkTogether("test_many_calls_in_flight_never_mix"),
    ),
    shown(
      "print goes to the log, not into the protocol",
      sdkWorker("test_whatever_a_tool_prints_stays_out_of_the_protocol"),
      calls("every line is labelled with source, function, call and trace"),
    ),
    shown(
      "a coroutine that blocks the loop is told, and the others run on",
      sdkTogether("test_a_coroutine_that_blocks_is_told_and_the_others_run_on"),
    ),
    shown(
      "an edited file has an environment of its own, and the calls of the version before keep theirs",
      edits("an edited file gets an environment of its own"),
    ),
    shown(
      "frames for calls that were never made, and second answers, are faults of the worker and told as such",
      faults("is a fault of the worker, and its calls are told", "a second answer to one call is a fault"),
    ),
    shown(
      "stderr is always drained",
      calls("megabytes on stderr block nothing"),
      childProcess("stderr is always drained"),
    ),
  ],
  "WORK-6": [
    shown(
      "the SDK writes JSON lines",
      sdkWorker("test_logs_are_lines_of_json_with_level_and_fields"),
      logs("a line of the SDK is read, any other is a message"),
    ),
    shown(
      "they are labelled with tool, call and trace, and streamed",
      calls("every line is labelled with source, function, call and trace", "progress and logs come before"),
      logs("a watcher gets the lines of its source in order"),
    ),
  ],
  "WORK-7": [
    shown(
      "an exception is its words to the caller and a traceback in the log",
      calls("an exception is the call's error"),
    ),
    shown("a result that is not JSON fails its call only", calls("a result that is not JSON and a wrong argument")),
    shown(
      "a timeout ends the call, and the worker only where it must; the other calls are finished first",
      canceling("a call whose time is over ends, coroutine or loop, and its worker goes on"),
      lives("a function that cannot be canceled has its worker replaced"),
    ),
  ],
  "WORK-8": [
    shown(
      "a crash fails its calls at once with the tail of stderr; the next call starts another worker",
      lives("a crash fails the calls at once, with the tail of stderr"),
    ),
    shown(
      "what a crash tells a call holds no other call's data",
      faults(
        "each call is told its own last words, and nothing that another call wrote",
        "half a frame is told to nobody but operators",
        "who comes while the worker is backed off is told why without the words of calls",
      ),
    ),
    shown(
      "one that keeps crashing is backed off with the reason kept",
      lives("a worker that keeps crashing is backed off"),
    ),
  ],
  "WORK-9": [
    shown(
      "nothing is left after SIGTERM, nor after SIGKILL of the service, children included",
      processes("SIGTERM finishes the calls in flight and leaves nothing", "SIGKILL of the service leaves neither"),
      lives("a worker that is stopped takes its children with it"),
      childProcess("leaves nothing behind, not even a grandchild", "leaves nothing behind when the watchdog had been"),
    ),
  ],
  "WORK-10": [
    shown(
      "calls per worker and per pool, and workers, are bounded: a call waits in line or is refused, as configured",
      lives("beyond its bound a call waits in line", "or is refused as resource_exhausted, as configured"),
      permits("places are given out in the order of asking"),
    ),
    shown(
      "what an older version of a file still does keeps no room from other files",
      edits("a full pool whose old version of a file still works makes room for a third file"),
    ),
    shown("a worker's memory can be limited", lives("a worker's memory is limited: the call over it fails alone")),
    shown("a worker's CPU can be limited", lives("a worker's processor time is limited: one that uses it up ends")),
  ],
  "WORK-11": [
    shown(
      "worker_main, get_config, get_secret, log and progress",
      sdkWorker(
        "test_a_tool_that_calls_worker_main_works_either_way",
        "test_config_and_secrets_belong_to_the_call",
        "test_logs_are_lines_of_json_with_level_and_fields",
        "test_a_step_of_the_log_ends_with_its_time",
      ),
      calls("a tool gets the secrets that its entry names", "progress and logs come before the one result"),
    ),
    shown(
      "a tool calls other tools back through the pool, inside its run's bounds",
      testsOf("sdk/python/tests/test_call_tool.py")(
        "test_a_function_in_a_thread_waits_for_each_result",
        "test_a_coroutine_asks_several_at_a_time_and_gets_each_its_own",
        "test_a_cancel_ends_the_waiting_and_a_late_reply_is_nobodys",
      ),
      hostedSuite("calls is bound by what its run allows", "calls counts in its run's max_tool_calls"),
      frames("a question of a worker keeps the text of its arguments"),
    ),
  ],
  "WORK-12": [
    shown(
      "a hosted module uses registry, config and model of its agent, within its run's limits",
      hostedSuite(
        "an agent's run reads a file, runs a command and calls a hosted tool, which uses the agent's tools and a model",
        "calls is bound by what its run allows",
      ),
    ),
    shown("a module that changes is loaded anew", hostedFiles("a change is loaded, of what it imports too")),
    shown(
      "one that throws, exits, fills memory or loops is contained",
      hosted(
        "is the error of its call, and nothing else happens",
        "ends its process: its calls are told",
        "a loop without",
      ),
      hostedFiles("is refused with its reason and hides no other"),
    ),
  ],
};
