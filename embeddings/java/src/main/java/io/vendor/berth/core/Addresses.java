package io.vendor.berth.core;

import java.net.InetAddress;
import java.util.regex.Pattern;

/**
 * Addresses from text. InetAddress.getByName would ask the name service for whatever it does not
 * know for an address; this never does.
 */
public final class Addresses {
  private static final Pattern OCTET = Pattern.compile("0|[1-9][0-9]{0,2}");
  private static final Pattern GROUP = Pattern.compile("[0-9a-fA-F]{1,4}");
  private static final int GROUPS = 8;

  private Addresses() {}

  /** Reads an IPv4 or IPv6 address without a zone. Throws IllegalArgumentException on all else. */
  public static InetAddress parse(String text) {
    byte[] bytes = text.indexOf(':') < 0 ? parseOctets(text) : parseGroups(text);
    if (bytes == null) throw new IllegalArgumentException("Not an address: \"" + text + "\"");
    return (bytes.length == 4 ? Family.IPV4 : Family.IPV6).address(bytes);
  }

  private static byte[] parseOctets(String text) {
    String[] words = text.split("\\.", -1);
    if (words.length != 4) return null;
    byte[] bytes = new byte[4];
    for (int index = 0; index < 4; index++) {
      if (!OCTET.matcher(words[index]).matches()) return null;
      int octet = Integer.parseInt(words[index]);
      if (octet > 255) return null;
      bytes[index] = (byte) octet;
    }
    return bytes;
  }

  /** Groups before and after "::", which stands for one group of zeros or more (RFC 4291 §2.2). */
  private static byte[] parseGroups(String text) {
    int gap = text.indexOf("::");
    byte[] head = parseRun(gap < 0 ? text : text.substring(0, gap), gap < 0);
    byte[] tail = parseRun(gap < 0 ? "" : text.substring(gap + 2), true);
    if (head == null || tail == null) return null;
    int length = head.length + tail.length;
    if (gap < 0 ? length != 2 * GROUPS : length > 2 * (GROUPS - 1)) return null;
    byte[] bytes = new byte[2 * GROUPS];
    System.arraycopy(head, 0, bytes, 0, head.length);
    System.arraycopy(tail, 0, bytes, bytes.length - tail.length, tail.length);
    return bytes;
  }

  /** The bytes of groups with single colons between them; the last may be an IPv4 address. */
  private static byte[] parseRun(String text, boolean isEnd) {
    if (text.isEmpty()) return new byte[0];
    String[] words = text.split(":", -1);
    String last = words[words.length - 1];
    byte[] octets = isEnd && last.indexOf('.') >= 0 ? parseOctets(last) : null;
    int groups = octets == null ? words.length : words.length - 1;
    if (groups > GROUPS) return null;
    byte[] bytes = new byte[2 * groups + (octets == null ? 0 : 4)];
    for (int index = 0; index < groups; index++) {
      if (!GROUP.matcher(words[index]).matches()) return null;
      int group = Integer.parseInt(words[index], 16);
      bytes[2 * index] = (byte) (group >>> 8);
      bytes[2 * index + 1] = (byte) group;
    }
    if (octets != null) System.arraycopy(octets, 0, bytes, 2 * groups, 4);
    return bytes;
  }
}
