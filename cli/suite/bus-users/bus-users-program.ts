import { busUsers } from "../../../services/bus-users.ts";
import { printJson } from "../../printing/terminal.ts";

printJson(busUsers(process.argv.slice(2)));
