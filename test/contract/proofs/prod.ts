import { open, type Proofs, shown, testsOf } from "./proof.ts";

const compose = testsOf("test/system/operation/cluster/compose.test.ts");
const image = testsOf("test/system/operation/deployment/image.test.ts");
const kubernetes = testsOf("test/system/operation/deployment/kubernetes.test.ts");
const kubernetesNats = testsOf("test/system/operation/deployment/kubernetes-nats.test.ts");
const systemd = testsOf("test/system/operation/deployment/systemd.test.ts");
const single = testsOf("test/system/operation/deployment/single.test.ts");
const up = testsOf("test/system/operation/up.test.ts");
const gatewayAgain = testsOf("test/system/operation/gateway-again.test.ts");
const refusals = testsOf("test/system/cli/cli-refusals.test.ts");
const packed = testsOf("test/system/operation/packed.test.ts");
const watching = testsOf("test/system/cli/cli-watching.test.ts");
const policy = testsOf("services/tool-router/tools/policy.test.ts");
const cli = testsOf("test/system/cli/cli.test.ts");
const checks = testsOf("tools/check/checks.ts");
const files = testsOf("test/contract/documents/file-reference.test.ts");
const settings = testsOf("test/contract/documents/settings.test.ts");

export const prod: Proofs = {
  "PROD-1": [
    shown(
      "a packed tarball runs in an empty folder with an empty home, without install scripts",
      packed(
        "serves it: an agent runs, and a tool of each kind answers",
        "is a library with types, and stubs of the contract",
      ),
    ),
    open("the package is to be had from the registry", "It is private."),
    shown(
      "wheels for Python are built twice alike, and work where nothing else is installed",
      testsOf("tools/pack/release/release.test.ts")("a release holds every package, built twice alike and proven"),
    ),
    shown(
      "the module for Go is in the package, and a module of one's own takes it from there",
      packed("brings the module for Go, which a new module finds as its README says"),
    ),
    shown("an image and a compose file of many hold what they need, as far as reading them shows", [
      ...image("copies everything that the command and the services import"),
      ...compose("runs every service, and nothing else"),
    ]),
    shown(
      "what a compose file of one container starts serves a project, and keeps its key and its sessions",
      single("starts, answers, and has its key and its sessions again in the next container"),
    ),
    open("the image is built and run", "No Docker engine is there in the tests."),
    shown(
      "manifests of Kubernetes give each service its key, probes, a budget and a closed network, and its queue scales the orchestrator",
      checks("Kubernetes takes what kustomize renders, and KEDA its part"),
      kubernetes(
        "are all there, and each has a budget for disruptions",
        "is asked whether it lives and is ready",
        "takes services to NATS, NATS to itself, and everybody to the gateway alone",
      ),
      kubernetesNats("is a cluster of three, which its probes find healthy", "tells a scaler of the orchestrator"),
    ),
    open("a cluster runs them", "There is none in the tests."),
    shown(
      "units of systemd start the suite, or one service, with a user and directories of their own, and stop it gently",
      checks("units of systemd are linted (systemdlint)"),
      systemd(
        "starts the suite by one unit, and each of its services by the other",
        "has a user of its own, and writes only what is its own",
        "is stopped by one signal to one process",
      ),
    ),
  ],
  "PROD-2": [
    shown(
      "a project is a folder: init makes it, and commands find it upwards",
      packed("makes a project, which stays as it is when it is made again", "serves it: an agent runs"),
    ),
    shown(
      "a folder that is named and not there is an error",
      packed("a folder that the project names and that is not there, and a name that is none"),
    ),
    shown(
      "chat talks with an agent in one session, stops answers, and takes answers to what people are asked",
      testsOf("test/system/cli/cli-chat.test.ts")(
        "answers each line that is piped in",
        "goes on in a session, and leaves it open",
        "stops an answer at Ctrl-C",
        "asks for an approval in the chat",
      ),
    ),
    shown(
      "dev opens the console, tells what happens, follows files and starts again where the start changed",
      testsOf("test/system/operation/dev.test.ts")("`dev` opens the console"),
    ),
    shown(
      "the CLI says where it looked and how to start the suite",
      refusals("where nothing answers: says so and how to start"),
    ),
    shown("a shell completes names that the suite knows, where one runs", [
      ...testsOf("cli/completing/asked.test.ts")("asks the suite for"),
      ...packed("serves it: an agent runs"),
    ]),
    shown("the CLI finds the running suite by itself", packed("serves it: an agent runs")),
  ],
  "PROD-3": [
    shown(
      "`up` leaves no process behind, ended or killed, and its address and store serve the next one",
      up("starts everything, says where it is", "that is killed takes everything with it"),
      packed("ends the suite with the npx that started it"),
      gatewayAgain("a gateway that took a free port and died is back"),
    ),
    shown(
      "`run` closes the session that it opened, and says who is waited for",
      watching("`run` says who is waited for and how to answer, and closes the session"),
    ),
    shown(
      "no file is left by what was started for a moment, and what starts right after one that ends waits for it",
      packed("leaves no file behind once it has ended"),
      testsOf("runtime/bus/nats-server/nats-server.test.ts")("waits for an owner that is ending"),
    ),
  ],
  "PROD-4": [
    shown(
      "fs_read, fs_write and shell_exec are an agent's only where its file names them",
      policy("what touches this machine is in use by its very name alone"),
    ),
    shown(
      "a file chooses the others by group or by name, and its model is told of no more",
      policy(
        "are all where its file does not choose",
        "are those that its file chooses, by group and by name",
        "are none where it chooses none",
        "are those that allowed names, where it names one",
        "that are not chosen are refused with the rule",
      ),
      testsOf("services/spaces/testing/run-context.test.ts")("an agent without built-ins is told nothing of them"),
      testsOf("services/orchestrator/loop/inbox/take-events.test.ts")("what is for agents with a tool that this one"),
    ),
    open(
      "the file alone chooses fs_read and its like",
      "Each needs an entry of the catalogue with its policy beside it.",
    ),
  ],
  "PROD-5": [
    shown(
      "every variable stands in docs/settings.md, which is generated, with its default",
      settings(
        "is what the configs declare",
        "reads exactly the variables that it declares",
        "has the defaults that it declares",
      ),
    ),
    shown(
      "the files of agents and tools have generated JSON Schemas, by which they are read",
      testsOf("services/tool-router/catalogue/files/file-schemas.test.ts")("there are examples of both kinds"),
      checks("generated code is fresh"),
    ),
    shown(
      "every field of agents, tools and servers is in a generated reference",
      files("every field of the files of agents and tools is told with its meaning and its value"),
      checks("reference of settings and files is fresh"),
    ),
    shown("the examples of agents apply as they stand", cli("applies the example %s as it stands")),
    shown(
      "each command that a document shows is one that there is",
      testsOf("test/contract/documents/commands.test.ts")(
        "each command that a document shows is one that there is, with its options",
        "each npm script that a document shows is one that there is",
      ),
    ),
    shown(
      "the files of agents and tools that documents show are read as they stand",
      testsOf("test/contract/documents/files.test.ts")("there is JSON on each of the pages", "%s: %s is read"),
    ),
    shown(
      "every command of the tutorial is run by CI",
      testsOf("test/system/tutorial/tutorial.test.ts")("the page %s says what happens"),
    ),
    shown(
      "so is every command of the README, that of the package and that of the checkout",
      packed("does what its README says, command by command"),
      testsOf("test/system/operation/readme.test.ts")("each command of the README does what the README says"),
    ),
  ],
};
