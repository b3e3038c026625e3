package dev.oriel;

import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Every option of the library's table arrives; a wrong value is refused with the option's name. */
class Options extends Checks {
  /** Not set with the others, and why. */
  private static final Map<String, String> LEFT_OUT = new HashMap<>();

  static {
    LEFT_OUT.put("device", "the checks run on one device");
    LEFT_OUT.put("draft_model", "needs a file of another model");
    LEFT_OUT.put("prefix_file", "needs a snapshot of this model");
    LEFT_OUT.put("lora", "needs an adapter of this model");
    LEFT_OUT.put("control_vector", "needs a control vector of this model");
    LEFT_OUT.put("control_layers", "needs a control vector of this model");
    LEFT_OUT.put("adapters", "needs an adapter of this model");
    LEFT_OUT.put("mmproj", "needs an encoder of this model's pictures");
    LEFT_OUT.put("image_tokens", "needs an encoder of this model's pictures");
    LEFT_OUT.put("min_speed", "needs a device whose speed is known");
  }

  /** The load uses them up, and describe() does not list them. */
  private static final List<String> NOT_LISTED =
      Arrays.asList("system_prompt", "calibration", "session_windows", "f16_layers");

  private static List<String> table() {
    List<String> rows = new ArrayList<>();
    Matcher row = Pattern.compile("\\{\"name\"[^{}]*\\}").matcher(Oriel.describeOptions());
    while (row.find()) {
      rows.add(row.group());
    }
    expect(rows.size() > 50, rows.size() + " options");
    return rows;
  }

  private static boolean isOf(String row, String scope) {
    return member(row, "scope").equals(scope);
  }

  /** Texts, lists and folders that mean something to the option. */
  private static String special(String name, String folder) {
    switch (name) {
      case "cache_folder":
      case "prepared_dir":
      case "retrieval_folder":
        return folder;
      case "system_prompt":
        return "You are a pirate.";
      case "session_windows":
        return "64";
      case "window_shares":
        return "128,0,0,0,0,0";
      case "f16_layers":
        return "1,0,0,0,0,0";
      case "template":
        return "chatml";
      case "memory":
        return "33554432";
      case "calibration":
      case "tool_choice": // the others need tools
        return "none";
      case "grammar":
        return "root ::= \"yes\"";
      case "trigger":
        return "yes";
      case "tools":
      case "documents":
        return "[]";
      case "template_variables":
        return "{\"mood\": \"good\"}";
      case "schema":
        return "{\"type\": \"integer\"}";
      case "stop":
        return "never";
      case "logit_bias":
        return "5:-inf";
      case "date":
        return "20240229";
      default:
        return null;
    }
  }

  /** Another value than the default. */
  private static String valueOf(String row, String folder) {
    String name = member(row, "name");
    String given = special(name, folder);
    String standard = member(row, "default");
    if (given != null) {
      return given;
    }
    switch (member(row, "type")) {
      case "flag":
        return standard.equals("true") ? "false" : "true";
      case "choice":
        Matcher word = Pattern.compile("\"([a-z0-9_]+)\"").matcher(row.substring(row.indexOf("\"choices\"") + 9));
        while (word.find()) {
          if (!word.group(1).equals(standard) && !word.group(1).equals("help")) {
            return word.group(1);
          }
        }
        throw new AssertionError(row);
      case "bytes":
        return "1048576";
      case "text":
        return "subgroup";
      default:
        double least = Double.parseDouble(member(row, "least"));
        double most = Double.parseDouble(member(row, "most"));
        if (member(row, "type").equals("number")) {
          return Double.toString(least < 0.25 && most > 0.25 ? 0.25 : least);
        }
        long value = (long) Math.max(least, Math.min(most, 3));
        return Long.toString(standard.equals(Long.toString(value)) ? value - 1 : value);
    }
  }

  private static void expectRefused(OrielSettings<?> settings, String row, Body use) throws Exception {
    String type = member(row, "type");
    String name = member(row, "name");
    if (type.equals("text") || type.equals("file") || name.equals("stop") || name.equals("dry_breakers")) {
      return; // any text may be one
    }
    settings.set(name, "no such value");
    String message = expectFails(OrielException.Status.ARGUMENT, use);
    expect(message.contains(name) && message.contains("no such value"), message);
    settings.unset(name);
  }

  /** Sets the other options that the option needs. */
  private static void addNeeds(String name, OrielOptions load, OrielReplyOptions reply, String folder) {
    load.set("constraints", name.equals("schema") || name.equals("grammar") || name.equals("trigger"));
    if (name.startsWith("retrieval")) {
      load.set("retrieval", 1 << 20).set("retrieval_folder", folder);
    }
    if (name.equals("trigger")) {
      reply.set("grammar", "root ::= \"no\"");
    }
  }

  private static void expectArrives(String row, String folder) throws Exception {
    String name = member(row, "name");
    String value = valueOf(row, folder);
    OrielOptions load = options().set("memory", 64 << 20);
    OrielSessionOptions session = new OrielSessionOptions();
    OrielReplyOptions reply = new OrielReplyOptions();
    addNeeds(name, load, reply, folder);
    OrielSettings<?> to = isOf(row, "load") ? load : isOf(row, "session") ? session : reply;
    to.set(name, value);
    try (OrielModel model = Oriel.load(TINY, load); OrielSession conversation = model.session(session)) {
      if (to == reply) {
        conversation.chat(SUM, reply.has("max_tokens") ? reply : reply.set("max_tokens", 4), null);
        expectRefused(reply, row, () -> conversation.chat(SUM, reply, null));
        return;
      }
      String json = isOf(row, "load") ? model.describe() : conversation.describe();
      String options = json.substring(json.lastIndexOf("\"options\""));
      if (NOT_LISTED.contains(name)) {
        expect(!options.contains("\"" + name + "\""), "it is listed now");
      } else {
        String got = member(options, name).replace("\\\"", "\"");
        expect(got.equals(value), "it is " + got + ", not " + value);
      }
      expectRefused(to, row, () -> {
        if (to == load) {
          Oriel.plan(TINY, load);
        } else {
          model.session(session).close();
        }
      });
    }
  }

  static void every_option_arrives() throws Exception {
    Path folder = Files.createTempDirectory("oriel-options");
    List<String> wrong = new ArrayList<>();
    for (String row : table()) {
      String name = member(row, "name");
      if (LEFT_OUT.containsKey(name)) {
        System.out.println(name + " is left out: " + LEFT_OUT.get(name));
        continue;
      }
      try {
        expectArrives(row, folder.toString());
      } catch (OrielException | AssertionError e) {
        wrong.add(name + ": " + e.getMessage());
      }
    }
    expect(wrong.isEmpty(), String.join("\n", wrong));
  }

  static void a_wrong_name_or_scope_is_told() throws Exception {
    String message = expectFails(OrielException.Status.ARGUMENT, () -> Oriel.plan(TINY, options().set("windw", 5)));
    expect(message.contains("windw") && message.contains("window"), message);
    message = expectFails(OrielException.Status.ARGUMENT, () -> Oriel.plan(TINY, options().set("max_tokens", 5)));
    expect(message.contains("max_tokens") && message.contains("reply"), message);
    expectThrows(IllegalArgumentException.class, () -> Oriel.plan(TINY, options().set("kv", "f16\0")));
  }

  static void constants_are_the_names_of_the_table() throws Exception {
    List<String> names = new ArrayList<>();
    for (String row : table()) {
      names.add(member(row, "name"));
    }
    List<String> constants = new ArrayList<>();
    for (Field field : OrielOption.class.getFields()) {
      constants.add((String) field.get(null));
      expectEqual(field.getName().toLowerCase(), field.get(null));
    }
    Collections.sort(names);
    Collections.sort(constants);
    expectEqual(names, constants);
  }

  static void a_later_value_replaces_an_earlier_one() {
    OrielOptions options = options().set(OrielOption.WINDOW, 50).set(OrielOption.WINDOW, 60).set(OrielOption.KV, "f16");
    expectEqual(60, Oriel.plan(TINY, options).windowTokens);
    expect(Oriel.plan(TINY, options.unset(OrielOption.WINDOW)).windowTokens > 60, "it is still 60");
    expect(Oriel.plan(TINY, options.set("window", "max").set("memory", "64MiB")).windowTokens > 60, "max");
  }
}
