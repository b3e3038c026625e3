package dev.oriel;

/** Options of a reply: {@code new OrielReplyOptions().set("max_tokens", 200).set("temperature", 0.5)}. */
public final class OrielReplyOptions extends OrielSettings<OrielReplyOptions> {}
