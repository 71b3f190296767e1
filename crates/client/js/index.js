// The package's public names.

export { DataClient } from "./src/data_client.js";
