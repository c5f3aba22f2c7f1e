#include "assay/error.h"

#include <algorithm>

namespace assay {

std::string UserError::render(const UserErrorDetail& detail) {
  std::string text;
  if (detail.where.line != 0) {
    text += detail.where.file + ":" + std::to_string(detail.where.line) + ":" +
            std::to_string(detail.where.column) + ": ";
  }
  text += detail.message;
  if (!detail.source_line.empty() && detail.where.column > 0) {
    const std::string number = std::to_string(detail.where.line);
    const std::size_t underline = std::max<std::size_t>(detail.length, 1);
    text += "\n  " + number + " | " + detail.source_line;
    text += "\n  " + std::string(number.size(), ' ') + " | " +
            std::string(detail.where.column - 1, ' ') + "^" + std::string(underline - 1, '~');
  }
  if (!detail.hint.empty()) text += "\n  hint: " + detail.hint;
  return text;
}

std::string InternalError::render(const std::string& message, const char* file, int line) {
  return std::string("internal error: ") + message + " (" + file + ":" + std::to_string(line) +
         "). This is a bug in Assay; please report it together with the file you ran.";
}

}  // namespace assay
