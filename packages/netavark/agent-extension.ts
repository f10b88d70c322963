/** Networks of Podman 5: the driver of netavark, and the directory of its networks. */
import { Option } from "commander";
import type { AgentExtension } from "../../host/extension.ts";
import { NetavarkDriver } from "./driver.ts";
import { decodePodmanFile } from "./podman-network.ts";

export default {
  addAgentOptions: (program) =>
    void program.addOption(
      new Option("--podman-networks-dir <directory>", "embedded mode: directory of Podman's networks; may be missing")
        .default("/etc/containers/networks")
        .env("BERTH_PODMAN_NETWORKS_DIR"),
    ),
  openDriver: async ({ podmanNetworksDir: directory }: { readonly podmanNetworksDir: string }) => ({
    name: "netavark",
    directory,
    files: { name: /\.json$/, decode: decodePodmanFile },
    open: (plugins) => new NetavarkDriver(plugins),
  }),
} satisfies AgentExtension;
