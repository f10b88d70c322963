/**
 * A namespace held open: one socket for its routes, one for its tables of nf_tables when somebody needs it, and a way in for its settings.
 * The path is followed once. What becomes of it afterwards does not matter: all of these stay with the same namespace, which lives as long.
 * Effects: descriptors until it is disposed of.
 */
import { loadNative, type Native } from "./native.ts";
import { type Conversation, createConversation } from "./netlink/conversation.ts";
import { type Datagrams, openNetfilterSocket, openRouteSocket } from "./netlink/socket.ts";
import { type NetnsIdentity, openNetns } from "./netns.ts";

/**
 * Most routes, rules, addresses, links … of one family that are read in a pod's namespace. Who may change it decides how many there are, and
 * the whole node waits while they are read. As many as definitions may ask for in a pod of four NICs.
 * @limit
 */
export const MAX_POD_ENTRIES = 16_384;

/** What observing and changing a namespace needs of it. */
export interface NamespaceSource {
  /** Where it was found, for errors. */
  readonly path: string;
  /** Leads into it while it is open, for work inside: {@link withNetns}, sysctls. */
  readonly entrance: string;
  /** For IFLA_NET_NS_FD. */
  readonly fd: number;
  readonly route: Conversation;
  /** With nf_tables; its socket is opened when it is first asked for. Throws NetlinkError where the kernel has none. */
  readonly netfilter: Conversation;
}

export interface OpenNamespace extends NamespaceSource, Disposable {
  readonly identity: NetnsIdentity;
}

/** The namespace of a pod, which decides what is in it: of each kind not more than MAX_POD_ENTRIES is read. Throws as {@link openNamespace}. */
export function openPodNamespace(path: string, native: Native = loadNative()): OpenNamespace {
  return openNamespace(path, native, MAX_POD_ENTRIES);
}

/**
 * Opens the namespace at `path`; a list of more than `most` entries is refused when it is read.
 * Throws NetnsError when there is none, NetlinkError when the kernel refuses a socket.
 */
export function openNamespace(path: string, native: Native = loadNative(), most?: number): OpenNamespace {
  using opened = new DisposableStack();
  const { fd, identity } = opened.use(openNetns(path, native));
  const entrance = `/proc/thread-self/fd/${fd}`;
  const route = createConversation(opened.use(openRouteSocket(entrance, native)), most);
  let netfilter: Conversation | undefined;
  const held = opened.move();
  return {
    path,
    entrance,
    fd,
    identity,
    route,
    get netfilter() {
      const open = (): Datagrams => held.use(openNetfilterSocket(entrance, native));
      netfilter ??= createConversation(open(), most);
      return netfilter;
    },
    [Symbol.dispose]: () => held.dispose(),
  };
}
