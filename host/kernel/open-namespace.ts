/**
 * An open namespace: a socket for rtnetlink, one for nf_tables if needed, and a path to enter it for sysctls. The
 * original path is resolved once; afterwards everything refers to the same namespace, which lives as long as this is
 * open.
 * Effects: descriptors until disposed of.
 */
import { EPROTONOSUPPORT } from "./errno.ts";
import { loadNative, type Native } from "./native.ts";
import { type Conversation, createConversation } from "./netlink/conversation.ts";
import { unlessRefused } from "./netlink/error.ts";
import { type Datagrams, openNetfilterSocket, openRouteSocket } from "./netlink/socket.ts";
import { type OpenNetns, openNetns, withNetns } from "./netns.ts";
import { type MirrorOptions, NodeMirror } from "./node-mirror.ts";

/**
 * Most objects of one kind (routes, rules, addresses, links …) that are read in a pod's namespace. The pod's owner
 * decides their number, and all requests of the node wait while they are read. A pod of four NICs may need this many.
 */
export const MAX_POD_ENTRIES = 16_384;

/** The interface for observing and changing a namespace. */
export interface NamespaceSource {
  /** The original path, for errors. */
  readonly path: string;
  /** A path into the namespace while it is open, for {@link withNetns} and sysctls. */
  readonly entrance: string;
  /** Descriptor for IFLA_NET_NS_FD. */
  readonly fd: number;
  readonly route: Conversation;
  /** The conversation with nf_tables, opened at the first access. Throws NetlinkError if the kernel lacks nf_tables. */
  readonly netfilter: Conversation;
}

/** The node's namespace, with a mirror of its state. */
export interface NodeNamespace extends OpenNamespace {
  readonly mirror: NodeMirror;
}

export interface OpenNamespace extends NamespaceSource, OpenNetns {}

/**
 * Opens a pod's namespace, whose contents the pod decides: at most MAX_POD_ENTRIES objects of each kind are read. One
 * visit opens both sockets. Throws as {@link openNamespace}.
 */
export function openPodNamespace(path: string): OpenNamespace {
  return open(path, loadNative(), { most: MAX_POD_ENTRIES, withNetfilter: true, closesAside: false });
}

/** As openPodNamespace, to delete an nf_tables table: closing does not wait until the kernel has freed that. */
export function openPodForCleaning(path: string): OpenNamespace {
  return open(path, loadNative(), { most: MAX_POD_ENTRIES, withNetfilter: true, closesAside: true });
}

/** Opens the namespace at `path`. Throws NetnsError if there is none, NetlinkError if the kernel refuses a socket. */
export function openNamespace(path: string, native: Native = loadNative()): OpenNamespace {
  return open(path, native, { most: undefined, withNetfilter: false, closesAside: false });
}

/** Opens the node's namespace at `path` and mirrors its state. Throws as {@link openNamespace}. */
export function openNode(path: string, options: MirrorOptions = {}): NodeNamespace {
  using opened = new DisposableStack();
  const namespace = opened.use(openNamespace(path, options.native));
  const mirror = opened.use(new NodeMirror(namespace, options));
  const held = opened.move(); // it ends the namespace, whose end is replaced here
  return Object.assign(namespace, { mirror, [Symbol.dispose]: () => held.dispose() });
}

interface OpenOptions {
  /** Reading a list of more entries fails. */
  readonly most: number | undefined;
  readonly withNetfilter: boolean;
  readonly closesAside: boolean;
}

function open(path: string, native: Native, { most, withNetfilter, closesAside }: OpenOptions): OpenNamespace {
  using opened = new DisposableStack();
  const netns = opened.use(openNetns(path, native));
  const { fd, device, inode } = netns;
  const converse = (datagrams: Datagrams): Conversation => createConversation(opened.use(datagrams), most);
  const sockets = withNetns(
    netns,
    () => ({
      route: converse(openRouteSocket(netns, native)),
      // a kernel without nf_tables is reported at their first use
      netfilter: withNetfilter
        ? unlessRefused([EPROTONOSUPPORT], () => converse(openNetfilterSocket(netns, native, closesAside)))
        : undefined,
    }),
    native,
  );
  let { netfilter } = sockets;
  const held = opened.move();
  return {
    path,
    entrance: `/proc/thread-self/fd/${fd}`,
    fd,
    device,
    inode,
    route: sockets.route,
    get netfilter() {
      netfilter ??= createConversation(held.use(openNetfilterSocket(netns, native, closesAside)), most);
      return netfilter;
    },
    [Symbol.dispose]: () => held.dispose(),
  };
}
