package dev.oriel;

/** How a reply is generated, such as {@code new OrielReplyOptions().set("max_tokens", 200).set("temperature", 0.5)}. */
public final class OrielReplyOptions extends OrielSettings<OrielReplyOptions> {}
