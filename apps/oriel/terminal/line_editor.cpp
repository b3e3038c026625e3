#include "terminal/line_editor.h"

#ifndef ORIEL_LINE_EDITOR

namespace cli {

std::unique_ptr<LineEditor> LineEditor::open() { return nullptr; }

}  // namespace cli

#else

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/ioctl.h>
#include <unistd.h>

#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/line_editor.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

static_assert(sizeof(wchar_t) == sizeof(char32_t));

std::wstring wideOf(std::string_view utf8) {
  const std::u32string characters = charactersOf(utf8);
  return {characters.begin(), characters.end()};
}

std::string utf8Of(const std::wstring& wide) {
  return cli::utf8Of(std::u32string(wide.begin(), wide.end()));
}

/// The key that makes libedit call actOn(). Terminals never send it, since it means "quit".
constexpr wchar_t kAct = L'\x1c';
constexpr wchar_t kEnterKey = L'\r';
constexpr wchar_t kAbort = L'\x07';      // Ctrl-G
constexpr wchar_t kSearchKey = L'\x12';  // Ctrl-R
constexpr wchar_t kEraseWord = L'\x17';  // Ctrl-W
constexpr char32_t kPrefixKey = 0x18;    // Ctrl-X
constexpr size_t kHistory = 500;

/// Last row of a text after a prompt of this width, from 0.
size_t lastRow(size_t prompt_columns, const std::wstring& text, size_t columns) {
  size_t row = 0;
  size_t column = prompt_columns;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(L'\n', begin), text.size());
    row += (column + columnsOf(utf8Of(text.substr(begin, end - begin)))) / columns;
    row += end < text.size() ? 1 : 0;
    column = 0;
    begin = end + 1;
  }
  return row;
}

bool isBackspace(char32_t character) { return character == 0x08 || character == 0x7F; }

class Editor final : public LineEditor {
 public:
  ~Editor() override {
    if (edit_ != nullptr) {
      lib_.end(edit_);
    }
    if (out_ != nullptr) {
      std::fclose(out_);
    }
    if (taken_) {
      leaveTerminal();
    }
  }

  bool start();
  Result next(std::string* text) override;
  void giveBack(const std::string& text) override { given_back_ = wideOf(text); }
  void takeTypedAhead() override { keys_.takeTypedAhead(); }
  void holdTypedAhead() override { keys_.holdTypedAhead(); }
  void setHistory(const std::vector<std::string>& texts) override {
    for (const std::string& text : texts) {
      history_.push_back(wideOf(text));
    }
  }

 private:
  enum class Act { kNone, kInsert, kReplace, kContinue, kDelete, kErase, kMove, kRefresh };

  static Editor* of(EditLine* edit) {
    return static_cast<Editor*>(of_process_ != nullptr && of_process_->edit_ == edit ? of_process_
                                                                                     : nullptr);
  }
  static int onRead(EditLine* edit, wchar_t* c) { return of(edit)->read(c); }
  static unsigned char onAct(EditLine* edit, wint_t) { return of(edit)->actOn(); }
  static wchar_t* onPrompt(EditLine* edit) { return of(edit)->prompt_.data(); }

  int read(wchar_t* c);
  int readKey(const Key& key, wchar_t* c);
  unsigned char actOn();

  std::wstring text() const;
  size_t cursor() const;
  /// Sets the next action of actOn(), and returns the key for it.
  int act(Act act, std::wstring text, wchar_t* c);
  int moveTo(size_t cursor, wchar_t* c);
  int vertically(bool up, wchar_t* c);
  int completed(const std::wstring& before, wchar_t* c);
  int recall(size_t position, wchar_t* c);
  int searchFor(size_t from, wchar_t* c);
  bool searchKey(const Key& key, int* result, wchar_t* c);
  void endSearch();
  void setPrompt(const std::wstring& shown);
  void remember(const std::wstring& line);
  /// The displayed form of inserted text: verbatim, or a name if it would fill more than half the screen.
  std::wstring shown(const std::wstring& inserted);
  std::wstring whole(std::wstring line) const;
  /// Length of the named text that ends before the cursor; 0: none.
  size_t nameBefore(const std::wstring& line, size_t at) const;
  void redraw(bool stopped);

  static Editor* of_process_;  // libedit's callbacks need it during setup

  Libedit lib_;
  EditLine* edit_ = nullptr;
  std::FILE* out_ = nullptr;
  bool taken_ = false;
  KeyReader keys_;
  std::wstring prompt_;
  std::wstring given_back_;
  std::optional<Key> held_;
  std::wstring queued_;  ///< keys queued for libedit in place of a pressed one

  // The line that is being edited.
  Act act_ = Act::kNone;
  std::wstring act_text_;
  int act_count_ = 0;
  Result result_ = Result::kText;
  bool begun_ = false;
  bool prefixed_ = false;  ///< the previous key was Ctrl-X

  /// Long pastes are shown by a name, because libedit cannot display more than a screen.
  struct Named {
    std::wstring name;
    std::wstring text;
  };
  std::vector<Named> named_;
  std::vector<std::wstring> history_;
  std::vector<std::wstring>
      lines_;  ///< the history as edited at this prompt, and the new line; empty: not loaded
  size_t columns_ = 0;   ///< of the terminal
  size_t position_ = 0;  ///< in lines_

  bool searching_ = false;
  std::wstring sought_;
  std::wstring before_search_;
};

Editor* Editor::of_process_ = nullptr;

bool Editor::start() {
  if (!lib_.load() || !useUtf8()) {
    return false;
  }
  const int descriptor = dup(STDERR_FILENO);
  out_ = descriptor < 0 ? nullptr : fdopen(descriptor, "w");  // stderr itself is unbuffered
  if (out_ == nullptr) {
    return false;
  }
  catchInterrupts();
  edit_ = lib_.init("oriel", stdin, out_, out_);
  taken_ = edit_ != nullptr && takeTerminal();
  if (!taken_) {
    return false;
  }
  of_process_ = this;
  lib_.set(edit_, EL_SIGNAL, 0);
  lib_.set(edit_, EL_EDITOR, L"emacs");
  lib_.set(edit_, EL_GETCFN, &Editor::onRead);
  lib_.set(edit_, EL_PROMPT_ESC, &Editor::onPrompt, L'\1');
  lib_.set(edit_, EL_ADDFN, L"oriel-act", L"What Oriel does with a key", &Editor::onAct);
  const wchar_t* const bindings[][2] = {
      {L"^\\", L"oriel-act"},      {L"^W", L"ed-delete-prev-word"}, {L"^U", L"vi-kill-line-prev"},
      {L"^L", L"ed-clear-screen"}, {L"^V", L"ed-unassigned"},       {L"^J", L"ed-unassigned"},
      {L"^R", L"ed-unassigned"},   {L"^S", L"ed-unassigned"},       {L"^Z", L"ed-unassigned"},
  };
  for (const auto& binding : bindings) {
    lib_.set(edit_, EL_BIND, binding[0], binding[1], static_cast<wchar_t*>(nullptr));
  }
  // Distinguishes Enter from Ctrl-J.
  lib_.set(edit_, EL_SETTY, L"-d", L"-icrnl", L"-inlcr", L"+noflsh",
           static_cast<wchar_t*>(nullptr));
  setPrompt(L"> ");
  return true;
}

// Text between two \1 has no width. libedit sends it with the next character and drops it at the end, so the reset
// comes before the prompt's last character. libedit also treats such texts of two prompts as equal, so the prompt of a
// search, which replaces another in place, has none.
void Editor::setPrompt(const std::wstring& shown) {
  const std::string bright = bold(".");
  const std::wstring around = wideOf(bright);
  const size_t dot = around.find(L'.');
  prompt_ = dot == 0 || searching_ || shown.size() < 2
                ? shown
                : L"\1" + around.substr(0, dot) + L"\1" + shown.substr(0, shown.size() - 1) +
                      L"\1" + around.substr(dot + 1) + L"\1" + shown.back();
}

LineEditor::Result Editor::next(std::string* text) {
  result_ = Result::kText;
  begun_ = false;
  lines_.clear();
  searching_ = false;
  setPrompt(wideOf(prompt));
  terminalResized();
  terminalResumed();
  lib_.resize(edit_);
  columns_ = noteColumns();
  int count = 0;
  const wchar_t* const line = lib_.gets(edit_, &count);
  quietTerminal();
  std::wstring typed =
      line == nullptr ? L"" : std::wstring(line, static_cast<size_t>(std::max(count, 0)));
  if (!typed.empty() && typed.back() == L'\n') {
    typed.pop_back();
  }
  if (line == nullptr || count <= 0) {
    std::fputc('\n', out_);
    std::fflush(out_);
    return result_ == Result::kText ? Result::kEnd : result_;
  }
  const bool empty = typed.find_first_not_of(L" \t\n") == std::wstring::npos;
  if (!empty && result_ != Result::kEdit) {
    remember(typed);
  }
  if (result_ == Result::kInterrupted && !empty) {
    result_ = Result::kDropped;
  }
  *text = utf8Of(whole(typed));
  return result_;
}

std::wstring Editor::shown(const std::wstring& inserted) {
  winsize size = {};
  const size_t rows =
      ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
  if (lastRow(columnsOf(prompt), text() + inserted, noteColumns()) <
      std::max<size_t>(rows / 2, 2)) {
    return inserted;
  }
  const auto feeds = static_cast<size_t>(std::count(inserted.begin(), inserted.end(), L'\n'));
  const size_t lines = feeds + (inserted.back() == L'\n' ? 0 : 1);
  const std::wstring size_text = lines > 1 ? std::to_wstring(lines) + L" lines"
                                           : std::to_wstring(inserted.size()) + L" characters";
  named_.push_back(
      {L"[paste " + std::to_wstring(named_.size() + 1) + L": " + size_text + L"]", inserted});
  return named_.back().name;
}

std::wstring Editor::whole(std::wstring line) const {
  // Text after an insertion is not searched for names: a paste may contain another one's name.
  std::wstring text;
  for (size_t at = 0; at < line.size();) {
    const auto named = std::find_if(named_.begin(), named_.end(), [&](const Named& entry) {
      return line.compare(at, entry.name.size(), entry.name) == 0;
    });
    text += named == named_.end() ? line.substr(at, 1) : named->text;
    at += named == named_.end() ? 1 : named->name.size();
  }
  return text;
}

size_t Editor::nameBefore(const std::wstring& line, size_t at) const {
  for (const Named& entry : named_) {
    const size_t length = entry.name.size();
    if (at >= length && line.compare(at - length, length, entry.name) == 0) {
      return length;
    }
  }
  return 0;
}

void Editor::remember(const std::wstring& line) {
  if (history_.empty() || history_.back() != line) {
    history_.push_back(line);
    if (remembered) {
      remembered(utf8Of(whole(line)));
    }
  }
  if (history_.size() > kHistory) {
    history_.erase(history_.begin());
  }
}

std::wstring Editor::text() const {
  const LineInfoW* const line = lib_.line(edit_);
  return {line->buffer, line->lastchar};
}

size_t Editor::cursor() const {
  const LineInfoW* const line = lib_.line(edit_);
  return static_cast<size_t>(line->cursor - line->buffer);
}

int Editor::act(Act act, std::wstring text, wchar_t* c) {
  act_ = act;
  act_text_ = std::move(text);
  *c = kAct;
  return 1;
}

int Editor::moveTo(size_t target, wchar_t* c) {
  act_count_ = static_cast<int>(target) - static_cast<int>(cursor());
  return act(Act::kMove, L"", c);
}

/// libedit's input callback: returns 1 and a character, or 0 at the end.
int Editor::read(wchar_t* c) {
  if (!queued_.empty()) {
    *c = queued_[0];
    queued_.erase(0, 1);
    return 1;
  }
  if (!begun_) {
    begun_ = true;
    keepEditingModes();
    if (!given_back_.empty()) {
      std::wstring text;
      text.swap(given_back_);
      return act(Act::kInsert, shown(text), c);
    }
  }
  for (;;) {
    const Key key = held_ ? *held_ : keys_.next();
    held_.reset();
    int result = 0;
    if (searching_ && searchKey(key, &result, c)) {
      return result;
    }
    result = readKey(key, c);
    if (result >= 0) {
      return result;
    }
  }
}

/// -1: ignored key.
int Editor::readKey(const Key& key, wchar_t* c) {
  const auto plain = [c](wchar_t key_of_libedit) {
    *c = key_of_libedit;
    return 1;
  };
  const auto meta = [&](wchar_t letter) {
    queued_ = letter;
    return plain(L'\033');
  };
  const std::wstring line = text();
  const size_t at = cursor();
  const bool several = line.find(L'\n') != std::wstring::npos;
  const bool prefixed = std::exchange(prefixed_, false);
  switch (key.kind) {
    case Key::Kind::kNone:
      return 0;
    case Key::Kind::kInterrupt:
      clearInterrupts();
      result_ = Result::kInterrupted;
      return plain(kEnterKey);
    case Key::Kind::kRedraw:
      redraw(key.more);
      return -1;
    case Key::Kind::kEnter:
      if (at == line.size() && at > 0 && line[at - 1] == L'\\') {
        return act(Act::kContinue, L"", c);
      }
      if (key.more && !(stands_alone && stands_alone(utf8Of(line)))) {
        return act(Act::kInsert, L"\n", c);
      }
      return plain(kEnterKey);
    case Key::Kind::kNewLine:
      return act(Act::kInsert, L"\n", c);
    case Key::Kind::kPaste:
      return key.text.empty() ? -1 : act(Act::kInsert, shown(wideOf(key.text)), c);
    case Key::Kind::kUp:
    case Key::Kind::kDown:
      return vertically(key.kind == Key::Kind::kUp, c);
    case Key::Kind::kLeft:
      return plain(L'\x02');
    case Key::Kind::kRight:
      return plain(L'\x06');
    case Key::Kind::kWordLeft:
      return meta(L'b');
    case Key::Kind::kWordRight:
      return meta(L'f');
    case Key::Kind::kHome:
    case Key::Kind::kEnd: {
      const size_t before = at == 0 ? std::wstring::npos : line.rfind(L'\n', at - 1);
      const size_t begin = before == std::wstring::npos ? 0 : before + 1;
      return moveTo(
          key.kind == Key::Kind::kHome ? begin : std::min(line.find(L'\n', at), line.size()), c);
    }
    case Key::Kind::kDelete:
      return at < line.size() ? act(Act::kDelete, L"", c) : -1;
    case Key::Kind::kAlt:
      return key.character > 0x20 && key.character < 0x80
                 ? meta(static_cast<wchar_t>(key.character))
                 : -1;
    case Key::Kind::kCharacter:
      break;
  }
  const bool erases = isBackspace(key.character) || key.character == kEraseWord;
  if (const size_t named = erases ? nameBefore(line, at) : 0; named != 0) {
    act_count_ = static_cast<int>(named);
    return act(Act::kErase, L"", c);
  }
  switch (key.character) {
    case 0x01:  // Ctrl-A
      return several ? readKey({Key::Kind::kHome, 0, {}, false}, c) : plain(L'\x01');
    case kPrefixKey:
      prefixed_ = true;
      return -1;
    case 0x05:  // Ctrl-E
      if (prefixed) {
        result_ = Result::kEdit;
        return plain(kEnterKey);
      }
      return several ? readKey({Key::Kind::kEnd, 0, {}, false}, c) : plain(L'\x05');
    case 0x04:  // Ctrl-D; libedit would list completions at the end of a line
      return line.empty() ? 0 : readKey({Key::Kind::kDelete, 0, {}, false}, c);
    case 0x09:  // Tab
      return completed(line.substr(0, at), c);
    case 0x10:  // Ctrl-P
      return vertically(true, c);
    case 0x0E:  // Ctrl-N
      return vertically(false, c);
    case kSearchKey:
      searching_ = true;
      position_ = history_.size();
      sought_.clear();
      before_search_ = line;
      return searchFor(history_.size(), c);
    case kAct:
    case 0:
      return -1;
    default:
      return plain(static_cast<wchar_t>(key.character));
  }
}

unsigned char Editor::actOn() {
  switch (act_) {
    case Act::kReplace:
      lib_.move(edit_, static_cast<int>(text().size()));
      lib_.erase(edit_, static_cast<int>(text().size()));
      lib_.insert(edit_, act_text_.c_str());
      break;
    case Act::kContinue:  // a backslash before Enter
      lib_.erase(edit_, 1);
      lib_.insert(edit_, L"\n");
      break;
    case Act::kInsert:
      lib_.insert(edit_, act_text_.c_str());
      break;
    case Act::kDelete:
      lib_.move(edit_, 1);
      lib_.erase(edit_, 1);
      break;
    case Act::kErase:
      lib_.erase(edit_, act_count_);
      break;
    case Act::kMove:
      lib_.move(edit_, act_count_);
      break;
    case Act::kRefresh:
    case Act::kNone:
      break;
  }
  act_ = Act::kNone;
  return CC_REFRESH;
}

/// Up and down move between the message's lines, and past its first and last line through the history.
int Editor::vertically(bool up, wchar_t* c) {
  const std::wstring line = text();
  const size_t at = cursor();
  const size_t before = at == 0 ? std::wstring::npos : line.rfind(L'\n', at - 1);
  const size_t begin = before == std::wstring::npos ? 0 : before + 1;
  const size_t end = line.find(L'\n', at);
  if (up && begin > 0) {
    const size_t above = begin == 1 ? std::wstring::npos : line.rfind(L'\n', begin - 2);
    const size_t first = above == std::wstring::npos ? 0 : above + 1;
    return moveTo(std::min(first + (at - begin), begin - 1), c);
  }
  if (!up && end != std::wstring::npos) {
    const size_t last = std::min(line.find(L'\n', end + 1), line.size());
    return moveTo(std::min(end + 1 + (at - begin), last), c);
  }
  if (lines_.empty()) {
    lines_ = history_;
    lines_.emplace_back();
    position_ = history_.size();
  }
  if (up ? position_ == 0 : position_ + 1 == lines_.size()) {
    return -1;
  }
  lines_[position_] = line;
  return recall(up ? position_ - 1 : position_ + 1, c);
}

/// Inserts the common prefix of all completions; if nothing can be inserted, lists them.
int Editor::completed(const std::wstring& before, wchar_t* c) {
  const std::string text = utf8Of(before);
  const Completion completion = complete ? complete(text) : Completion();
  if (completion.words.empty()) {
    return -1;
  }
  std::string common = completion.words.front();
  for (const std::string& word : completion.words) {
    const auto differ = std::mismatch(common.begin(), common.end(), word.begin(), word.end());
    common.erase(differ.first, common.end());
  }
  while (!common.empty() && charactersOf(common).back() == kReplacement) {
    common.pop_back();  // part of a character
  }
  const size_t typed = text.size() - completion.from;
  if (completion.words.size() == 1 && common.back() != '/') {
    common += ' ';
  }
  if (common.size() > typed) {
    return act(Act::kInsert, wideOf(common.substr(typed)), c);
  }
  if (completion.words.size() > 1) {
    std::string list;
    for (const std::string& word : completion.words) {
      const size_t folder =
          completion.from == 0 ? std::string::npos : word.rfind('/', word.size() - 2);
      list += (list.empty() ? "" : "  ") + word.substr(folder + 1);
    }
    std::fputs(("\n" + dim(wrapped(list, columns_, 0)) + "\n").c_str(), out_);
    redraw(/*stopped=*/true);
  }
  return -1;
}

int Editor::recall(size_t position, wchar_t* c) {
  position_ = position;
  return act(Act::kReplace, lines_[position], c);
}

/// The newest history line before `from` that contains the search text.
int Editor::searchFor(size_t from, wchar_t* c) {
  size_t found = from;
  while (found > 0 && history_[found - 1].find(sought_) == std::wstring::npos) {
    --found;
  }
  const bool none = found == 0 && !sought_.empty();
  setPrompt((none ? L"(not found: " : L"(search: ") + sought_ + L") ");
  if (sought_.empty() || found == 0) {
    return act(Act::kRefresh, L"", c);
  }
  position_ = found - 1;
  return act(Act::kReplace, history_[position_], c);
}

void Editor::endSearch() {
  searching_ = false;
  lines_ = history_;
  lines_.push_back(before_search_);
  position_ = sought_.empty() ? history_.size() : std::min(position_, history_.size());
  setPrompt(wideOf(prompt));
}

/// True: call libedit now. A key outside the search ends it and then has its normal effect.
bool Editor::searchKey(const Key& key, int* result, wchar_t* c) {
  if (key.kind == Key::Kind::kRedraw) {
    redraw(key.more);
    *result = act(Act::kRefresh, L"", c);
    return true;
  }
  if (key.kind == Key::Kind::kInterrupt ||
      (key.kind == Key::Kind::kCharacter && key.character == kAbort)) {
    clearInterrupts();
    sought_.clear();
    endSearch();
    *result = act(Act::kReplace, before_search_, c);
    return true;
  }
  if (key.kind == Key::Kind::kCharacter) {
    const auto character = static_cast<wchar_t>(key.character);
    const bool erases = isBackspace(key.character);
    if (character == kSearchKey) {
      *result =
          searchFor(sought_.empty() ? history_.size() : std::min(position_, history_.size()), c);
      return true;
    }
    if (erases || character >= L' ') {
      if (erases && !sought_.empty()) {
        sought_.pop_back();
      } else if (!erases) {
        sought_ += character;
      }
      *result = searchFor(history_.size(), c);
      return true;
    }
  }
  endSearch();  // restores the prompt before the key takes effect
  held_ = key;
  *result = act(Act::kRefresh, L"", c);
  return true;
}

/// The screen no longer matches libedit's state. After a stop the cursor is on a new line. On a resize all terminals
/// except xterm rewrap their contents.
void Editor::redraw(bool stopped) {
  const size_t old_columns = columns_;
  columns_ = noteColumns();
  if (!stopped) {
    const size_t columns = variable("XTERM_VERSION").empty() ? columns_ : old_columns;
    const size_t row = lastRow(columnsOf(prompt), text().substr(0, cursor()), columns);
    std::fputs(("\r" + (row == 0 ? "" : "\033[" + std::to_string(row) + "A") + "\033[J").c_str(),
               out_);
  }
  lib_.resize(edit_);
  lib_.set(edit_, EL_REFRESH);
}

}  // namespace

std::unique_ptr<LineEditor> LineEditor::open() {
  const std::string terminal = variable("TERM");
  if (!isTerminal(Stream::kIn) || !isTerminal(Stream::kErr) || terminal.empty() ||
      terminal == "dumb") {
    return nullptr;
  }
  auto editor = std::make_unique<Editor>();
  if (!editor->start()) {
    return nullptr;
  }
  return editor;
}

}  // namespace cli

#endif
