import { open, type Proofs, shown } from "./proof.ts";

export const prod: Proofs = {
  "PROD-1": [
    shown(
      "a packed tarball runs in an empty folder with an empty home, without install scripts",
      "serves it: an agent runs, and a tool of each kind answers",
      "is a library with types, and stubs of the contract",
    ),
    open("the package is to be had from the registry", "It is private."),
    shown(
      "wheels for Python are built twice alike, and work where nothing else is installed",
      "a release holds every package, built twice alike and proven",
    ),
    shown(
      "the module for Go is in the package, and a module of one's own takes it from there",
      "brings the module for Go, which a new module finds as its README says",
    ),
    shown(
      "an image and a compose file of many hold what they need, as far as reading them shows",
      "copies everything that the command and the services import",
      "runs every service, and nothing else",
    ),
    shown(
      "what a compose file of one container starts serves a project, and keeps its key and its sessions",
      "starts, answers, and has its key and its sessions again in the next container",
    ),
    open("the image is built and run", "No Docker engine is there in the tests."),
    shown(
      "manifests of Kubernetes give each service its key, probes, a budget and a closed network, and its queue scales the orchestrator",
      "Kubernetes takes what kustomize renders, and KEDA its part",
      "are all there, and each has a budget for disruptions",
      "is asked whether it lives and is ready",
      "takes services to NATS, NATS to itself, and everybody to the gateway alone",
      "is a cluster of three, which its probes find healthy",
      "tells a scaler of the orchestrator",
    ),
    open("a cluster runs them", "There is none in the tests."),
    shown(
      "units of systemd start the suite, or one service, with a user and directories of their own, and stop it gently",
      "units of systemd are linted (systemdlint)",
      "starts the suite by one unit, and each of its services by the other",
      "has a user of its own, and writes only what is its own",
      "is stopped by one signal to one process",
    ),
  ],
  "PROD-2": [
    shown(
      "a project is a folder: init makes it, and commands find it upwards",
      "makes a project, which stays as it is when it is made again",
      "serves it: an agent runs",
    ),
    shown(
      "a folder that is named and not there is an error",
      "a folder that the project names and that is not there, and a name that is none",
    ),
    shown(
      "chat talks with an agent in one session, stops answers, and takes answers to what people are asked",
      "answers each line that is piped in",
      "goes on in a session, and leaves it open",
      "stops an answer at Ctrl-C",
      "asks for an approval in the chat",
    ),
    shown(
      "dev opens the console, tells what happens, follows files and starts again where the start changed",
      "`dev` opens the console",
    ),
    shown("the CLI says where it looked and how to start the suite", "where nothing answers: says so and how to start"),
    shown(
      "a shell completes names that the suite knows, where one runs",
      "asks the suite for",
      "serves it: an agent runs",
    ),
    shown("the CLI finds the running suite by itself", "serves it: an agent runs"),
  ],
  "PROD-3": [
    shown(
      "`up` leaves no process behind, ended or killed, and its address and store serve the next one",
      "starts everything, says where it is",
      "that is killed takes everything with it",
      "ends the suite with the npx that started it",
      "a gateway that took a free port and died is back",
    ),
    shown(
      "`run` closes the session that it opened, and says who is waited for",
      "`run` says who is waited for and how to answer, and closes the session",
    ),
    shown(
      "no file is left by what was started for a moment, and what starts right after one that ends waits for it",
      "leaves no file behind once it has ended",
      "waits for an owner that is ending",
    ),
  ],
  "PROD-4": [
    shown(
      "fs_read, fs_write and shell_exec are an agent's only where its file names them",
      "what touches this machine is in use by its very name alone",
    ),
    shown(
      "a file chooses the others by group or by name, and its model is told of no more",
      "are all where its file does not choose",
      "are those that its file chooses, by group and by name",
      "are none where it chooses none",
      "are those that allowed names, where it names one",
      "that are not chosen are refused with the rule",
      "an agent without built-ins is told nothing of them",
      "what is for agents with a tool that this one",
    ),
    open(
      "the file alone chooses fs_read and its like",
      "Each needs an entry of the catalogue with its policy beside it.",
    ),
  ],
  "PROD-5": [
    shown(
      "every variable stands in docs/settings.md, which is generated, with its default",
      "is what the configs declare",
      "reads exactly the variables that it declares",
      "has the defaults that it declares",
    ),
    shown(
      "the files of agents and tools have generated JSON Schemas, by which they are read",
      "there are examples of both kinds",
      "generated code is fresh",
    ),
    shown(
      "every field of agents, tools and servers is in a generated reference",
      "every field of the files of agents and tools is told with its meaning and its value",
      "reference of settings and files is fresh",
    ),
    shown("the examples of agents apply as they stand", "applies the example %s as it stands"),
    shown(
      "each command that a document shows is one that there is",
      "each command that a document shows is one that there is, with its options",
      "each npm script that a document shows is one that there is",
    ),
    shown(
      "the files of agents and tools that documents show are read as they stand",
      "there is JSON on each of the pages",
      "%s: %s is read",
    ),
    shown("every command of the tutorial is run by CI", "the page %s says what happens"),
    shown(
      "so is every command of the README, that of the package and that of the checkout",
      "does what its README says, command by command",
      "each command of the README does what the README says",
    ),
  ],
};
